# SPDX-License-Identifier: GPL-2.0-only
# Consumers that are large: databases, and a browser.
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

# With CI set, make test runs them as well: not under sanitizers, and not where T asks for something else.
ifeq ($(if $(CI),1)$(SANITIZE)$(T),10)
test: check-pipelines
endif
