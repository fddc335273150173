# SPDX-License-Identifier: GPL-2.0-only
# The emulated Nehalem. The project's Makefile includes this file. It also works alone:
#     make -f user/machine/machine.mk O=build machine
O      ?= build
PYTHON ?= /usr/bin/python3

MACHINE    := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# Several checkouts may share one build of the machine.
NHM_BUILD  ?= $(abspath $(O))/machine
NHMTAP     ?= $(abspath $(O))/nhmtap
export NHM_BUILD NHMTAP

.PHONY: machine

machine: ## build: build the emulated Nehalem (once; what is done is skipped)
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup
