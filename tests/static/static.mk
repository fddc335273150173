# SPDX-License-Identifier: GPL-2.0-only
# gcc's analyzer and clang-tidy on the whole program. There must be no warnings. Exceptions are
# listed here with the reason; those for clang-tidy are at the line.
static_of = $(static_flags_$(subst /,_,$(1)))

# These members are always in the BTF that is built into the program. Without them no run could
# start.
static_flags_user_aggregation_layout.c  = -Wno-analyzer-null-dereference
static_flags_user_branch_branches.c     = -Wno-analyzer-null-dereference
# Without a preset both options are given. The line before checks this, in a combination of three
# conditions.
static_flags_user_offcore_matrix.c      = -Wno-analyzer-null-dereference
# This code is reached only with an event that has a neighbour.
static_flags_user_plan_neighbours.c     = -Wno-analyzer-null-dereference
# A field's usual value is one of its values: compile-tables and the reader of --events-dir refuse a table where it is not.
static_flags_user_event_unit.c          = -Wno-analyzer-null-dereference
# The allocated memory is returned through another function.
static_flags_user_base_memory.c         = -Wno-analyzer-malloc-leak
# One choice is filled in per event, and no index is higher than the number of events.
static_flags_user_event_placement.c     = -Wno-analyzer-use-of-uninitialized-value

# Checks that nearly always find an error. The checks of style are left out of bugprone: adjacent
# arguments of the same type, implicit conversions, strcmp() as a condition, reserved names,
# parentheses in macros, sizes of pointers.
empty :=
tidy_checks = -*,bugprone-*,$(subst $(empty) ,$(comma),$(addprefix -bugprone-,easily-swappable-parameters \
	      narrowing-conversions implicit-widening-of-multiplication-result suspicious-string-compare reserved-identifier \
	      macro-parentheses sizeof-expression)),misc-redundant-expression,misc-misplaced-const,misc-static-assert,portability-*,readability-misleading-indentation

$(O)/static/%.checked: %.c | $(libperf_ready) $(protos:%=$(O)/gen/%.pb-c.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -Werror,$(cflags)) $(call own_of,$<) -fanalyzer -Werror $(call static_of,$<) -MF $@.d -c -o /dev/null $<
	$(Q)clang-tidy --quiet -checks='$(tidy_checks)' -warnings-as-errors='*' $< -- $(filter-out -Werror -MMD -MP,$(cflags)) \
		$(call own_of,$<) > $@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@
$(O)/static/user/base/embedded.checked: $(embedded) $(O)/gen/embedded.inc
-include $(sources:%.c=$(O)/static/%.checked.d)

.PHONY: check-static
check-static: $(sources:%.c=$(O)/static/%.checked) ## test: run gcc's analyzer and clang-tidy over the program
