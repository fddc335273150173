# SPDX-License-Identifier: GPL-2.0-only
# Large consumers: databases and a browser.
define pipelines_requirements
clickhouse-server | command -v clickhouse-server
clickhouse-client | clickhouse-client --version
victoria-metrics  | victoria-metrics -version
prometheus        | prometheus --version
prometheus-node-exporter | prometheus-node-exporter --version
python3-pil       | $(PYTHON) -c 'import PIL'
endef
export pipelines_requirements

.PHONY: check-pipelines
check-pipelines: $(O)/.test-packages $(O)/.pipelines-packages $(O)/nhmtap $(workloads) ## run nhmtap into ClickHouse, VictoriaMetrics, Prometheus and a browser
	$(pytest) $(wildcard tests/pipelines/check_*.py)

# If CI is set, make test runs these as well, but not under sanitizers, and not if T is set.
ifeq ($(if $(CI),1)$(SANITIZE)$(T),10)
test: check-pipelines
endif
