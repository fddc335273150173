# SPDX-License-Identifier: GPL-2.0-only
# libFuzzer targets: one file each in this folder, with a dictionary beside it where words help, run under ASan and
# UBSan for S seconds each, or up to another limit of libFuzzer's ('-runs=1000 -seed=1' does the same each time).
# FUZZ names those that are to be run. At the end of each stands what its inputs reach: coverage.py.
FUZZ_LIMIT ?= -max_total_time=$(or $(S),60)
FUZZ       ?= $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*.c)))

fuzz_flags    = $(filter-out -Werror,$(warnings)) -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -Iuser -Ibpf -Ievents -I$(O)/gen -MMD -MP \
		-DNHMTAP_VERSION='"$(version)"' -DSCHEMA_VERSION='"$(schema_version)"' \
		$(libperf_cflags) $(shell pkg-config --cflags $(packaged) $(late))
# The whole program but for main(): a target calls what it wants of it.
fuzz_objects := $(patsubst %.c,$(O)/fuzz/%.o,$(filter-out user/main.c,$(sources))) $(O)/fuzz/gen/known_events.o \
		$(O)/fuzz/gen/pprof.pb-c.o

$(O)/fuzz/user/%.o: user/%.c | $(libperf_ready) $(O)/gen/pprof.pb-c.h
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(fuzz_flags) -fsanitize=fuzzer-no-link $(call own_of,$<) -c -o $@ $<
$(O)/fuzz/user/embedded.o: $(embedded) $(O)/gen/embedded.inc
$(O)/fuzz/gen/%.o: $(O)/gen/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(fuzz_flags) -Wno-shadow -fsanitize=fuzzer-no-link -c -o $@ $<
-include $(fuzz_objects:.o=.d)
.SECONDARY: $(fuzz_objects) $(FUZZ:%=$(O)/fuzz/%) $(FUZZ:%=$(O)/fuzz/%-corpus)

$(O)/fuzz/%: tests/fuzz/%.c $(fuzz_objects)
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(fuzz_flags) -fsanitize=fuzzer -o $@ $^ $(libs) $(fuzz_link_$*)

# It is the process that it calls itself.
fuzz_link_worker = $(addprefix -Wl$(comma)--wrap=,posix_spawn syscall message_send message_receive place_open_debug)

# What a target starts from, and what it needs besides.
$(O)/fuzz/elf-corpus: tests/fuzz/elf-seeds
	$(Q)$< $@
$(O)/fuzz/eh_frame-corpus:
	$(Q)mkdir -p $@ && for file in /bin/true /lib64/ld-linux-x86-64.so.2; do objcopy -O binary --only-section=.eh_frame \
		--set-section-flags .eh_frame=alloc $$file $@/$$(basename $$file); done
$(O)/fuzz/%-corpus:
	$(Q)mkdir -p $@ && { [ ! -d tests/fuzz/seeds/$* ] || cp tests/fuzz/seeds/$*/* $@; }
$(O)/fuzz/host:
	@mkdir -p $@
	$(Q)cd tests && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -c 'import hosts, sys; hosts.build(sys.argv[1], hosts.NEHALEM)' $(abspath $@)
fuzz_options         = -max_len=4096
fuzz_options_events  = -max_len=512
fuzz_options_elf     = -max_len=65536
fuzz_options_eh_frame = -max_len=65536 -timeout=1
fuzz_options_records = -max_len=32768

fuzz_run = NHMTAP_FUZZ_HOST=$(abspath $(O))/fuzz/host NHMTAP_FUZZ_FOLDER=$(abspath $(O))/fuzz/folder $< $(fuzz_options)

.PHONY: fuzz
fuzz: $(O)/.test-packages $(FUZZ:%=fuzz-%) ## run each fuzzer for a minute (S=SECONDS, FUZZ='elf records')
fuzz-%: $(O)/fuzz/% $(O)/fuzz/%-corpus $(O)/fuzz/host
	$(call say,RUN,$<)
	$(Q)$(fuzz_run) $(FUZZ_LIMIT) $(addprefix -dict=,$(wildcard tests/fuzz/$*.dict)) -timeout=10 -rss_limit_mb=1024 \
		-artifact_prefix=$(O)/fuzz/$*- -print_final_stats=1 $(fuzz_options_$*) $(O)/fuzz/$*-corpus
	$(Q)$(fuzz_run) $(fuzz_options_$*) -runs=0 -print_coverage=1 $(O)/fuzz/$*-corpus 2>&1 | $(PYTHON) tests/fuzz/coverage.py
