# SPDX-License-Identifier: GPL-2.0-only
# The programs that only the measurements need.
measuring := $(addprefix $(O)/programs/bench/,around bursts cost pingpong places empty.bpf.o hash.bpf.o stacks.bpf.o unread.bpf.o edges.bpf.o unhashed.bpf.o waits work)

bench: $(measuring) $(O)/programs/bench/plan $(O)/programs/bench/naming

$(O)/programs/bench/%: tests/bench/%.c | $(O)/.test-packages
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -O2 -g -MMD -MP $(LDFLAGS) -o $@ $< $(shell pkg-config --cflags --libs libbpf)

$(O)/programs/bench/%.bpf.o: tests/bench/%.bpf.c | $(O)/.test-packages
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(bpf_flags) -c -o $@ $<

# The machine runs it without libraries.
$(O)/programs/bench/work: LDFLAGS += -static

# These measure the program's own code, and are linked from its objects.
$(O)/programs/bench/plan $(O)/programs/bench/naming: $(O)/programs/bench/%: tests/bench/%.c $(filter-out $(O)/user/main.o,$(objects))
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cflags) -o $@ $^ $(libs)

-include $(addsuffix .d,$(basename $(measuring)))
