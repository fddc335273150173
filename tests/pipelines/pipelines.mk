# SPDX-License-Identifier: GPL-2.0-only
# Large consumers: databases and a browser.

.PHONY: check-pipelines
check-pipelines: $(O)/.test-packages $(O)/.pipelines-packages $(O)/nhmtap $(workloads) ## check: run nhmtap into ClickHouse, VictoriaMetrics, Prometheus and a browser
	$(pytest) $(wildcard tests/pipelines/check_*.py)

# If CI is set, make test runs these as well, but not under sanitizers, and not if T is set.
ifeq ($(if $(CI),1)$(SANITIZE)$(T),10)
test: $(O)/.pipelines-packages
# By their names: pytest would collect a file twice that is named beside its folder.
asked += -o python_files='test_*.py $(notdir $(wildcard tests/pipelines/check_*.py))'
endif
