# SPDX-License-Identifier: GPL-2.0-only
# The emulated Nehalem. The project's Makefile includes this file. It also works alone:
#     make -f tests/machine/machine.mk O=build machine
O      ?= build
PYTHON ?= /usr/bin/python3

MACHINE    := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# Several checkouts may share one build of the machine.
NHM_BUILD  ?= $(abspath $(O))/machine
NHMTAP     ?= $(abspath $(O))/nhmtap
export NHM_BUILD NHMTAP

# A guest keeps a core busy. One worker runs all tests of a kind of machine, so that it boots once.
MACHINE_PYTEST = $(PYTHON) -m pytest -n 2 --dist loadgroup

.PHONY: machine check-machine check-machine-all check-kernels check-machine-mutants

machine: ## build: build the emulated Nehalem (once; what is done is skipped)
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup

# The program is built if there is a rule for it, that is, if a Makefile includes this file.
ifneq ($(words $(MAKEFILE_LIST)),1)
check-machine check-machine-all check-kernels: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known
endif

check-machine: machine ## test: test the emulated Nehalem, and the program on it
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) -m 'not thorough' $(MACHINE)

check-machine-all: machine ## check: the same on every model and kernel, and doctor --selftest on broken machines
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) $(MACHINE) $(MACHINE)/check_selftest.py

# Kernels in addition to the two of every run. All tests run on the newest, and check_kernels.py on
# the oldest. NetBurst is left out, because its counts are wrong in a different way on each kernel.
check-kernels: ## check: test the program on the oldest and the newest kernel of Debian's archives: 5.10 and 7.3
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup 5.10:bullseye 7.3:trixie-backports
	$(if $(filter 1,$(V)),,@)NHM_KERNELS=7.3 $(MACHINE_PYTEST) $(MACHINE) -k '7.3 and not netburst'
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) $(MACHINE)/check_kernels.py

check-machine-mutants: machine ## check: break the emulated Nehalem in small ways; each must be noticed
	$(if $(filter 1,$(V)),,@)PYTHONPATH=$(MACHINE)/../lib $(PYTHON) $(MACHINE)/mutants.py
