# SPDX-License-Identifier: GPL-2.0-only
"""Reads pages of metrics with Prometheus' own strict reader of OpenMetrics."""
import subprocess

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def families(text):
    """Returns {name: family} of a whole page."""
    assert text.endswith("# EOF\n"), text[-200:]
    return {family.name: family for family in text_string_to_metric_families(text)}


def total(text, name, **labels):
    """Returns the sum of the samples of this name that have these labels."""
    return sum(sample.value for family in families(text).values() for sample in family.samples
               if sample.name == name and all(sample.labels.get(k) == str(v) for k, v in labels.items()))


def check(text):
    """Returns promtool's status and messages about a page of the older format."""
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return said.returncode, said.stdout + said.stderr
