# SPDX-License-Identifier: GPL-2.0-only
# libFuzzer targets: one file each in this folder, run for FUZZ_SECONDS under ASan and UBSan.
FUZZ_SECONDS ?= 60
fuzz_sources := $(filter-out user/main.c user/embedded.c,$(wildcard user/*.c user/event/*.c user/plan/*.c user/host/*.c))
fuzz_flags    = -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		-Iuser -Ibpf -Iuser/event $(shell pkg-config --cflags jansson)

.PHONY: fuzz
fuzz: $(O)/.packages $(O)/.fuzz-packages $(O)/gen/known_events.c ## run each fuzzer for a minute (FUZZ_SECONDS)
	@mkdir -p $(O)/fuzz/host $(O)/fuzz/corpus
	$(Q)cd tests && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -c 'import hosts, sys; hosts.build(sys.argv[1], hosts.NEHALEM)' $(abspath $(O))/fuzz/host
	$(call say,FUZZ,tests/fuzz/events.c)
	$(Q)$(CLANG) $(fuzz_flags) -o $(O)/fuzz/events tests/fuzz/events.c $(fuzz_sources) $(O)/gen/known_events.c $(shell pkg-config --libs jansson)
	$(Q)NHMTAP_FUZZ_HOST=$(abspath $(O))/fuzz/host $(O)/fuzz/events -max_total_time=$(FUZZ_SECONDS) -max_len=512 \
		-dict=tests/fuzz/events.dict -artifact_prefix=$(O)/fuzz/ -print_final_stats=1 $(O)/fuzz/corpus

# clang's own sanitizer runtime is a package apart.
$(O)/.fuzz-packages: | $(O)/.packages
	@echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' | \
		$(CLANG) -fsanitize=fuzzer,address -xc - -o /dev/null 2> /dev/null || { \
		echo "  INSTALL  libclang-rt-dev"; \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends libclang-rt-dev > $(O)/apt.log 2>&1 \
			|| { echo "missing, by the Debian package that has it: libclang-rt-dev" >&2; exit 1; }; }
	@touch $@
