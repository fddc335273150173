# SPDX-License-Identifier: GPL-2.0-only
# Readers that nobody here wrote, from npm. No other target needs node or this registry.

.PHONY: check-readers
check-readers: $(O)/.test-packages $(O)/.readers-packages $(O)/readers/.installed $(O)/nhmtap $(workloads) ## check: axe-core, speedscope, OpenTelemetry's decoder and Kubernetes' schemas, from npm
	NHMTAP_READERS=$(abspath $(O)/readers) $(pytest) tests/readers/check_readers.py

$(O)/readers/.installed: tests/readers/package.json $(O)/.readers-packages
	@mkdir -p $(@D)
	@cp $< $(@D)
	$(Q)cd $(@D) && npm install --ignore-scripts --no-audit --no-fund --no-package-lock
	@touch $@
