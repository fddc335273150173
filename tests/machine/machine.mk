# SPDX-License-Identifier: GPL-2.0-only
# The tests on the emulated Nehalem, which user/machine/machine.mk builds.
MACHINE_TESTS := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))

# A guest keeps a core busy. One worker runs all tests of a kind of machine, so that it boots once.
MACHINE_PYTEST = $(PYTHON) -m pytest -n 2 --dist loadgroup

.PHONY: check-machine check-machine-all check-kernels check-machine-mutants costs costs-accept

check-machine check-machine-all check-kernels: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known

check-machine: machine ## test: test the emulated Nehalem, and the program on it
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) -m 'not thorough' $(MACHINE_TESTS)

check-machine-all: machine ## check: test the emulated Nehalem and the program on every model and kernel, and doctor --selftest on broken machines
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) $(MACHINE_TESTS) $(MACHINE_TESTS)/check_selftest.py

# Kernels in addition to the two of every run. All tests run on the newest, and check_kernels.py on
# the oldest. NetBurst is left out, because its counts are wrong in a different way on each kernel.
check-kernels: ## check: test the program on the oldest and the newest kernel of Debian's archives: 5.10 and 7.3
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup 5.10:bullseye 7.3:trixie-backports
	$(if $(filter 1,$(V)),,@)NHM_KERNELS=7.3 $(MACHINE_PYTEST) $(MACHINE_TESTS) -k '7.3 and not netburst'
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) $(MACHINE_TESTS)/check_kernels.py

check-machine-mutants: machine ## check: break the emulated Nehalem in small ways; each must be noticed
	$(if $(filter 1,$(V)),,@)PYTHONPATH=$(MACHINE_TESTS)/../lib:$(MACHINE) $(PYTHON) $(MACHINE_TESTS)/mutants.py

costs: ## measure: what the program itself costs in instructions, on the emulated Nehalem, and perf beside it
costs-accept: ## measure: write these costs to tests/machine/costs.txt, with which the tests compare
costs costs-accept: $(O)/nhmtap $(workloads) machine
	$(if $(filter 1,$(V)),,@)NHMTAP=$(abspath $(O)/nhmtap) NHMTAP_PROGRAMS=$(abspath $(O)/programs) $(PYTHON) $(MACHINE_TESTS)/costs.py $(if $(filter %-accept,$@),--accept)
