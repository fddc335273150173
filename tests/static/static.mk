# SPDX-License-Identifier: GPL-2.0-only
# gcc's analyzer and clang-tidy over the whole program: no warning, or an exception here with its reason (of clang-tidy's: at the
# line).
static_of = $(static_flags_$(subst /,_,$(1)))

# Members of the program's own BTF, which is built with it: without one no run would begin.
static_flags_user_collection_layout.c   = -Wno-analyzer-null-dereference
static_flags_user_branch_branches.c     = -Wno-analyzer-null-dereference
# Without a preset both options are given: the line before says so, of three conditions together.
static_flags_user_offcore_matrix.c      = -Wno-analyzer-null-dereference
# An event that has a neighbour is the only one that comes here.
static_flags_user_plan_neighbours.c     = -Wno-analyzer-null-dereference
# A field's usual value is one of its values: compile-tables and the reader of --events-dir refuse a table where it is not.
static_flags_user_event_unit.c          = -Wno-analyzer-null-dereference
# What is allocated is returned, by another function.
static_flags_user_memory.c              = -Wno-analyzer-malloc-leak
# As many choices are filled in as there are events, and no event is higher than that.
static_flags_user_event_placement.c     = -Wno-analyzer-use-of-uninitialized-value

# What is nearly always an error. Left out of bugprone are the checks of style: arguments of one type beside each other,
# conversions that C makes, strcmp() as a condition, reserved names, parentheses in macros, sizes of pointers.
empty :=
tidy_checks = -*,bugprone-*,$(subst $(empty) ,$(comma),$(addprefix -bugprone-,easily-swappable-parameters \
	      narrowing-conversions implicit-widening-of-multiplication-result suspicious-string-compare reserved-identifier \
	      macro-parentheses sizeof-expression)),misc-redundant-expression,misc-misplaced-const,misc-static-assert,portability-*,readability-misleading-indentation

$(O)/static/%.checked: %.c | $(libperf_ready) $(O)/gen/pprof.pb-c.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -Werror,$(cflags)) $(call own_of,$<) -fanalyzer -Werror $(call static_of,$<) -MF $@.d -c -o /dev/null $<
	$(Q)clang-tidy --quiet -checks='$(tidy_checks)' -warnings-as-errors='*' $< -- $(filter-out -Werror -MMD -MP,$(cflags)) \
		$(call own_of,$<) > $@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@
$(O)/static/user/embedded.checked: $(embedded) $(O)/gen/embedded.inc
-include $(sources:%.c=$(O)/static/%.checked.d)

.PHONY: check-static
check-static: $(sources:%.c=$(O)/static/%.checked) ## run gcc's analyzer and clang-tidy over the program
