# SPDX-License-Identifier: GPL-2.0-only
# libFuzzer targets: one file each in this folder, run under ASan and UBSan for FUZZ_SECONDS, or up to
# another limit of libFuzzer's ('-runs=1000 -seed=1' does the same each time).
FUZZ_SECONDS ?= 60
FUZZ_LIMIT   ?= -max_total_time=$(FUZZ_SECONDS)
# The plan and all that it is made from: nothing of it opens anything.
fuzz_sources := $(filter-out user/main.c user/versions.c,$(wildcard user/*.c $(patsubst %,user/%/*.c,host event metric plan tables)))
fuzz_flags    = -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		-Iuser -Ibpf -Iuser/event -I$(O)/gen $(shell pkg-config --cflags jansson)
# What names code in files.
naming_sources := user/memory.c user/guarded.c $(patsubst %,user/naming/%.c,naming named_source pool order spans symbols image dwarf_image lines debug_file maps demangle)
# What makes tables of .eh_frame.
unwind_sources := user/memory.c user/guarded.c user/interned.c user/unwind/table.c $(patsubst %,user/naming/%.c,pool order spans symbols image demangle)

.PHONY: fuzz
fuzz: $(O)/.test-packages $(O)/gen/known_events.c $(embedded) $(O)/gen/embedded.inc ## run each fuzzer for a minute (FUZZ_SECONDS)
	@mkdir -p $(O)/fuzz/host $(O)/fuzz/corpus
	$(Q)cd tests && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -c 'import hosts, sys; hosts.build(sys.argv[1], hosts.NEHALEM)' $(abspath $(O))/fuzz/host
	$(call say,FUZZ,tests/fuzz/events.c)
	$(Q)$(CLANG) $(fuzz_flags) -o $(O)/fuzz/events tests/fuzz/events.c $(fuzz_sources) $(O)/gen/known_events.c $(shell pkg-config --libs jansson zlib)
	$(Q)NHMTAP_FUZZ_HOST=$(abspath $(O))/fuzz/host $(O)/fuzz/events $(FUZZ_LIMIT) -max_len=512 \
		-dict=tests/fuzz/events.dict -artifact_prefix=$(O)/fuzz/ -print_final_stats=1 $(O)/fuzz/corpus
	$(call say,FUZZ,tests/fuzz/elf.c)
	$(Q)$(CLANG) $(fuzz_flags) -o $(O)/fuzz/elf tests/fuzz/elf.c $(naming_sources) -ldw -lelf -llzma -lz -liberty
	$(Q)tests/fuzz/elf-seeds $(O)/fuzz/elf-corpus
	$(Q)$(O)/fuzz/elf $(FUZZ_LIMIT) -max_len=65536 -timeout=10 -rss_limit_mb=1024 -artifact_prefix=$(O)/fuzz/ \
		-print_final_stats=1 $(O)/fuzz/elf-corpus
	$(call say,FUZZ,tests/fuzz/eh_frame.c)
	$(Q)$(CLANG) $(fuzz_flags) -o $(O)/fuzz/eh_frame tests/fuzz/eh_frame.c $(unwind_sources) -ldw -lelf -llzma -liberty
	$(Q)mkdir -p $(O)/fuzz/eh_frame-corpus && for file in /bin/true /lib64/ld-linux-x86-64.so.2; do \
		objcopy -O binary --only-section=.eh_frame --set-section-flags .eh_frame=alloc $$file \
			$(O)/fuzz/eh_frame-corpus/$$(basename $$file); done
	$(Q)$(O)/fuzz/eh_frame $(FUZZ_LIMIT) -max_len=65536 -timeout=1 -rss_limit_mb=1024 -artifact_prefix=$(O)/fuzz/ \
		-print_final_stats=1 $(O)/fuzz/eh_frame-corpus
