# SPDX-License-Identifier: GPL-2.0-only
"""OpenTelemetry's environment variables say which service, team or machine the records belong to,
as in the specification of its resource SDK."""
import os

import otlp
import pytest
from sessions import faults, write

ATTRIBUTES, SERVICE = "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"


def run(nhmtap, form="json", **variables):
    environment = {name: text for name, text in os.environ.items() if name not in (ATTRIBUTES, SERVICE)}
    result = nhmtap("stat", "-e", "page-faults", "--format", form, "--", "true", env={**environment, **variables})
    assert result.status == 0
    return result


def added(result, without):
    """The attributes of the start record's resource that a run without variables does not have."""
    plain = without.one("start")["resource"]
    return {name: value for name, value in result.one("start")["resource"].items()
            if name not in plain or (plain[name] != value and name != "process.pid")}


@pytest.fixture
def plain(nhmtap):
    return run(nhmtap)


@pytest.mark.parametrize("text, attributes", [
    ("service.name=shop,team=blue", {"service.name": "shop", "team": "blue"}),
    ("note=a%2Cb%3dc%25%20d", {"note": "a,b=c% d"}),
    ("a%2Cb=1", {"a,b": "1"}),
    (" a = b\t, c=d ", {"a": "b", "c": "d"}),
    ("place=Z%C3%BCrich,town=Zürich", {"place": "Zürich", "town": "Zürich"}),
    ("key=YQ==", {"key": "YQ=="}),
    ("empty=", {"empty": ""}),
    ("a=1,a=2", {"a": "2"}),
    ("host.name=other", {"host.name": "other"}),
    ("", {}),
])
def test_attributes_of_the_environment_are_the_records(nhmtap, plain, text, attributes):
    result = run(nhmtap, **{ATTRIBUTES: text})
    assert added(result, plain) == attributes and not result.err


@pytest.mark.parametrize("text, told", [
    ("a=1,b", "'b' has no '='"),
    ("a=1,=2", "'=2' has no name"),
    ("a=1,", "'' has no '='"),
    ("a=1,b=%2", "'b=%2' has a '%' without two hexadecimal digits"),
    ("a=1,b=%zz", "'b=%zz' has a '%' without two"),
    ("a=1,b=%00", "'b=%00' has a byte of zero"),
    ("a=1,b=%ff", "'b=%ff' is not UTF-8"),
    ("a=1,process.pid=1", "'process.pid=1' is what nhmtap finds out itself"),
    pytest.param("a=" + 4095 * "x", "it has 4097 bytes", id="one that is too long"),
])
def test_a_variable_with_a_mistake_is_told_and_left_out_as_a_whole(nhmtap, plain, text, told):
    result = run(nhmtap, **{ATTRIBUTES: text, SERVICE: "shop"})
    assert added(result, plain) == {"service.name": "shop"}
    assert result.err.startswith(f"nhmtap: {ATTRIBUTES} is left out") and told in result.err


def test_the_services_own_variable_wins(nhmtap, plain):
    result = run(nhmtap, **{ATTRIBUTES: "service.name=a,team=blue", SERVICE: "b,c=%41"})
    assert added(result, plain) == {"service.name": "b,c=%41", "team": "blue"}


def test_what_config_says_wins(nhmtap, tmp_path):
    config = write(tmp_path / "config", {"activities": [faults("counts", "stat", all_cpus=True)],
                                         "resource": {"service.name": "config", "x": "1"}})
    result = nhmtap("run", "--check", config, env={**os.environ, ATTRIBUTES: "x=2,y=3", SERVICE: "variable"})
    resource = result.one("start", activity="counts")["resource"]
    assert (resource["service.name"], resource["x"], resource["y"]) == ("config", "1", "3")


def test_otlp_has_them_in_every_line(nhmtap):
    result = run(nhmtap, "otlp", **{ATTRIBUTES: "team=blue", SERVICE: "shop"})
    for line in result.out.splitlines():
        resource = otlp.read(line).resource_metrics[0].resource
        own = {attribute.key: attribute.value.string_value for attribute in resource.attributes}
        assert own["team"] == "blue" and own["service.name"] == "shop"
