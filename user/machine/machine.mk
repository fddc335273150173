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

.PHONY: machine install-machine

machine: ## build: build the emulated Nehalem (once; what is done is skipped)
	$(if $(filter 1,$(V)),,@)$(MACHINE)/setup

# Sources stay behind, and most of what was built, since only building needs them.
machine_files = $(addprefix $(MACHINE)/,LICENSE README.md events-modelled.txt not-modelled.txt run $(notdir $(wildcard $(MACHINE)/*.py)))
machine_place = $(DESTDIR)$(or $(prefix),/usr/local)/lib/nhmtap/machine

install-machine: ## build: install the emulated Nehalem, which is to be built already (DESTDIR, prefix)
	@test -x $(NHM_BUILD)/nhm-bochs || { echo "make: $(NHM_BUILD) has no emulator; make machine builds it" >&2; exit 1; }
	install -d $(machine_place)/built
	cp $(machine_files) $(machine_place)
	cd $(machine_place) && $(PYTHON) -E -m compileall -q here.py nehalem.py guard.py forks.py guestimage.py light.py mkboot.py snapshots.py
	install -D -m 644 -t $(machine_place)/src/nhm $(MACHINE)/src/nhm/nhm_models.inc
	install -D -m 644 -t $(machine_place)/examples $(MACHINE)/examples/*
	cd $(NHM_BUILD) && find nhm-bochs nhm-restore here base.cpio apart.cpio boot.rom BIOS-bochs-latest vgabios-stdvga.bin kernel -type f ! -name 'vmlinu[xz]' -exec cp --parents -t $(abspath $(machine_place))/built {} +
