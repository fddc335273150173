# SPDX-License-Identifier: GPL-2.0-only
# Needed for the fleet in addition to the database of the pipelines.

shippers := $(O)/programs/fleet/ship $(O)/programs/fleet/drain

$(shippers): $(O)/programs/fleet/%: tests/fleet/%.c tests/fleet/stream.h | $(O)/.fleet-packages
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra -O2 -g -o $@ $< $$(pkg-config --cflags --libs libnats)

.PHONY: check-fleet
check-fleet: $(O)/.test-packages $(O)/.pipelines-packages $(O)/nhmtap $(workloads) $(shippers) ## check: run three hosts into NATS JetStream and ClickHouse, and kill each part
	$(pytest) tests/fleet/check_fleet.py
