# SPDX-License-Identifier: GPL-2.0-only
# Suites that nobody here wrote, on the emulated machine: foreign_suites.py has them, and a table for each says what is expected.
FOREIGN := perf selftests libpfm4 papi likwid bpftrace perf_event_tests

# S selects suites, C cases by parts of their names. L=1 runs those that the tables leave out, and no others.
.PHONY: check-foreign
check-foreign: $(O)/.test-packages $(O)/.foreign-packages $(O)/nhmtap machine ## check: run perf's, the kernel's, libpfm4's, PAPI's, likwid's, bpftrace's and perf_event_tests' tests on the machine (S='perf likwid', C=overflow)
	$(Q)NHMTAP=$(abspath $(O)/nhmtap) $(PYTHON) tests/foreign/foreign.py $(O)/foreign $(or $(S),$(FOREIGN)) $(if $(C),--only $(C)) $(if $(L),--left)
