# SPDX-License-Identifier: GPL-2.0-only
# The emulated Nehalem. Included by the project's Makefile; works alone as well:
#     make -f tests/machine/machine.mk O=build machine
O      ?= build
PYTHON ?= /usr/bin/python3

MACHINE    := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# Several checkouts may share one built machine.
NHM_BUILD  ?= $(abspath $(O))/machine
NHMTAP     ?= $(abspath $(O))/nhmtap
export NHM_BUILD NHMTAP

# A guest keeps a core busy. Of each kind of machine one worker has all the tests,
# so that it boots once.
MACHINE_PYTEST = $(PYTHON) -m pytest -q -p no:cacheprovider -n 2 --dist loadgroup

.PHONY: machine check-machine check-machine-all check-machine-mutants

machine: ## build the emulated Nehalem (once; what is done is skipped)
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup

# The program is built where there is a rule for it, that is when a Makefile includes this.
ifneq ($(words $(MAKEFILE_LIST)),1)
check-machine check-machine-all: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known
endif

check-machine: machine ## test the emulated Nehalem, and the program on it
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) -m 'not thorough' $(MACHINE)

check-machine-all: machine ## the same on every model and kernel
	$(if $(filter 1,$(V)),,@)$(MACHINE_PYTEST) $(MACHINE)

check-machine-mutants: machine ## break the emulated Nehalem in small ways; each must be noticed
	$(if $(filter 1,$(V)),,@)$(PYTHON) $(MACHINE)/mutants.py
