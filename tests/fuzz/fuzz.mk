# SPDX-License-Identifier: GPL-2.0-only
# libFuzzer targets. Each is one file in this folder, with a dictionary next to it where words help.
# They run under ASan and UBSan for S seconds each, or until another limit of libFuzzer ('-runs=1000
# -seed=1' is reproducible). FUZZ selects the targets. After each run, coverage.py prints the
# coverage of its inputs. `make fuzz-coverage` prints the coverage of the existing inputs without a
# run.
#
# FUZZ_BUILT=1 takes the objects of the program as they are, with the sanitizers of a build that has them, and compiles the
# targets alone. That takes a tenth of the time and shows that they work, but finds little: the program's branches don't
# guide what is tried, and are not measured.
FUZZ_LIMIT ?= -max_total_time=$(or $(S),60)
fuzzers    := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*.c)))
FUZZ       ?= $(fuzzers)
fuzz_folder := $(O)/fuzz$(if $(filter 1,$(FUZZ_BUILT)),-built)

# The parsers that each target tests. Their coverage is measured.
fuzz_parsers_config   = run/config option/option base/json_schema
fuzz_parsers_eh_frame = confined/eh_frame confined/unwind_rows unwind/table
fuzz_parsers_elf      = $(addprefix naming/,image debug_file symbols spans order demangle) $(addprefix confined/,dwarf_image split_unit go_image linkage relocations thread_slots symbol_index read_file lines)
fuzz_parsers_events   = $(addprefix event/,parse spelling encoding unit unit_terms escr_spelling branch_filter) tables/compose
fuzz_parsers_formula  = tables/formula
fuzz_parsers_gopclntab = confined/gopclntab confined/unwind_rows unwind/table
fuzz_parsers_maps     = $(addprefix naming/,maps jitdump symbols spans demangle) confined/jit_lines
fuzz_parsers_notes    = naming/mappings
fuzz_parsers_options  = option/option
fuzz_parsers_process_context = output/process_context
fuzz_parsers_pmu_events = tables/pmu_events base/json_file base/copied base/guarded
fuzz_parsers_records  = output/restream output/flamegraph output/activities output/calls record/stored_code record/stored_lines
fuzz_parsers_ring     = collection/sideband naming/mappings
fuzz_parsers_tables   = $(addprefix tables/,tables loader rows row_layout draft checks compose formula) base/json_schema
fuzz_parsers_types    = $(addprefix confined/,types access scope locals disassemble)
fuzz_parsers_worker   = naming/worker naming/named_source naming/pool unwind/table
fuzz_parsers_writers  = $(addprefix output/,meters flatten openmetrics otlp)
fuzz_measured        := $(sort $(foreach name,$(fuzzers),$(fuzz_parsers_$(name))))

fuzz_flags    = $(filter-out -Werror,$(warnings)) -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -Iuser -Ibpf -Ievents -I$(O)/gen -MMD -MP \
		$(libperf_cflags) $(shell pkg-config --cflags $(packaged) $(late))
# The whole program without main(). A target calls the functions that it tests.
fuzz_objects := $(patsubst %.c,$(fuzz_folder)/%.o,$(filter-out user/main.c,$(sources))) $(fuzz_folder)/gen/known_events.o \
		$(protos:%=$(fuzz_folder)/gen/%.pb-c.o)

$(fuzz_folder)/user/%.o: user/%.c | $(libperf_ready) $(protos:%=$(O)/gen/%.pb-c.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(fuzz_flags) -fsanitize=fuzzer-no-link $(call own_of,$<) -c -o $@ $<
$(fuzz_folder)/user/base/embedded.o: $(embedded) $(O)/gen/embedded.inc
$(fuzz_folder)/gen/%.o: $(O)/gen/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(fuzz_flags) -Wno-shadow -fsanitize=fuzzer-no-link -c -o $@ $<
-include $(fuzz_objects:.o=.d)
# This file has the list of measured objects.
$(fuzz_measured:%=$(fuzz_folder)/user/%.o): tests/fuzz/fuzz.mk
# Coverage data has relative paths, because ccache may return objects that were compiled in another
# folder.
$(fuzz_measured:%=$(fuzz_folder)/user/%.o): fuzz_flags += -fprofile-instr-generate -fcoverage-mapping -fcoverage-compilation-dir=.
.SECONDARY: $(fuzz_objects) $(FUZZ:%=$(fuzz_folder)/%) $(FUZZ:%=$(fuzz_folder)/%-corpus)

ifeq ($(FUZZ_BUILT),1)
# The engine without clang's sanitizers, which those of gcc would meet. It is in C++.
fuzz_engine = $(shell $(CLANG) -print-runtime-dir)/libclang_rt.fuzzer-x86_64.a
$(fuzz_folder)/%: tests/fuzz/%.c $(filter-out $(O)/user/main.o,$(objects))
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(filter-out -fsanitize% -fno-sanitize%,$(fuzz_flags)) -fsanitize=fuzzer-no-link -c -o $@.o $<
	$(Q)$(CC) $(CFLAGS) $(sanitize) -o $@ $@.o $(filter %.o,$^) $(fuzz_engine) $(libs) -lstdc++ $(fuzz_link_$*)
else
$(fuzz_folder)/%: tests/fuzz/%.c $(fuzz_objects)
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(fuzz_flags) -fsanitize=fuzzer -fprofile-instr-generate -o $@ $(filter-out %.h,$^) $(libs) $(fuzz_link_$*)
endif
$(fuzz_folder)/elf $(fuzz_folder)/types: tests/fuzz/sections.h tests/fuzz/itself.h
$(fuzz_folder)/tables $(fuzz_folder)/pmu_events: tests/fuzz/files.h
$(fuzz_folder)/eh_frame $(fuzz_folder)/gopclntab: tests/fuzz/unwinding.h

# The target plays the part of the worker process that it calls.
fuzz_link_worker = $(addprefix -Wl$(comma)--wrap=,posix_spawn syscall packet_send packet_receive place_open_debug)

# The input replaces the kernel's ring buffer.
fuzz_link_ring = $(addprefix -Wl$(comma)--wrap=,perf_mmap__read_event perf_mmap__consume)

# The input may advance the clock by an hour.
fuzz_link_writers = -Wl,--wrap=clock_gettime

# Names in program files would be read by another process, so they are made up. Each
# line that is written is checked.
fuzz_link_records = -Wl,--wrap=naming_file,--wrap=sink_put

# The initial inputs of the targets, and what they need in addition.
$(fuzz_folder)/elf-corpus $(fuzz_folder)/eh_frame-corpus $(fuzz_folder)/types-corpus: $(fuzz_folder)/%-corpus: tests/fuzz/%-seeds
	$(Q)$< $@
$(fuzz_folder)/%-corpus:
	$(Q)mkdir -p $@
$(fuzz_folder)/host:
	@mkdir -p $@
	$(Q)cd tests/lib && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -c 'import hosts, sys; hosts.build(sys.argv[1], hosts.NEHALEM)' $(abspath $@)
fuzz_options         = -max_len=4096
fuzz_options_events  = -max_len=512
fuzz_options_elf     = -max_len=65536
fuzz_options_types   = -max_len=65536
fuzz_options_eh_frame = -max_len=65536 -timeout=1
fuzz_options_gopclntab = -max_len=65536 -timeout=5
fuzz_options_records = -max_len=32768

fuzz_run = NHMTAP_FUZZ_HOST=$(abspath $(fuzz_folder))/host NHMTAP_FUZZ_FOLDER=$(abspath $(fuzz_folder))/$*-folder $< $(fuzz_options)

# libFuzzer writes new inputs to the first folder.
fuzz_inputs = $(fuzz_folder)/$*-corpus $(wildcard tests/fuzz/seeds/$*)

ifneq ($(FUZZ_BUILT),1)
fuzz_llvm  = $(shell $(CLANG) -print-prog-name=llvm-$1)
fuzz_reach = LLVM_PROFILE_FILE=$<.profraw $(fuzz_run) $(fuzz_options_$*) -runs=0 $(fuzz_inputs) > $<.log 2>&1 || \
		{ cat $<.log; exit 1; }; \
	$(call fuzz_llvm,profdata) merge -o $<.profdata $<.profraw && \
	$(call fuzz_llvm,cov) export -instr-profile=$<.profdata $< | \
		$(PYTHON) tests/fuzz/coverage.py $* $(fuzz_parsers_$*:%=user/%.c)
endif

.PHONY: fuzz
fuzz: $(O)/.test-packages $(FUZZ:%=fuzz-%) ## search: run each fuzzer for a minute (S=SECONDS, FUZZ='elf records')
fuzz-%: $(fuzz_folder)/% $(fuzz_folder)/%-corpus $(fuzz_folder)/host
	$(call say,RUN,$<)
	$(Q)LLVM_PROFILE_FILE=/dev/null $(fuzz_run) $(FUZZ_LIMIT) $(addprefix -dict=,$(wildcard tests/fuzz/$*.dict)) -timeout=60 -rss_limit_mb=1024 \
		-artifact_prefix=$(fuzz_folder)/$*- -print_final_stats=1 $(fuzz_options_$*) $(fuzz_inputs)
	$(Q)$(fuzz_reach)

.PHONY: fuzz-coverage
fuzz-coverage: $(O)/.test-packages $(FUZZ:%=fuzz-coverage-%) ## search: print what the inputs of the fuzzers reach
fuzz-coverage-%: $(fuzz_folder)/% $(fuzz_folder)/%-corpus $(fuzz_folder)/host
	$(Q)$(fuzz_reach)
