# SPDX-License-Identifier: GPL-2.0-only
"""Root of a user namespace, as in a rootless container. It holds all capabilities, but not in the
initial user namespace, where the kernel requires them."""
import hosts
import pytest
from callers import paranoid

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
ROOT_OF_ANOTHER = ["unshare", "-Ur"]
WHO = pytest.mark.parametrize("before", [ROOT_OF_ANOTHER, NOBODY + ROOT_OF_ANOTHER], ids=["by root", "by nobody"])


@WHO
def test_what_works_without_capabilities_is_planned(nhmtap, before):
    """As for any user: kernel mode is excluded, and the event's name says so."""
    result = nhmtap("stat", "-e", "page-faults", "--", "true", before=before)
    if paranoid() > 2:
        assert result.status == 2 and "user namespace" in result.one("error")["remedy"]
        return
    count = result.one("count")
    assert (result.status, count["status"]) == (0, "counted") and count["value"] > 0
    assert count["event"] == ("page-faults:u" if paranoid() == 2 else "page-faults")


@WHO
@pytest.mark.parametrize("arguments", [
    ["profile", "--", "true"], ["mem", "-e", "page-faults", "-c", "1", "--", "true"],
    ["stat", "-e", "page-faults", "-a"],
    # No such cgroup exists yet.
    ["stat", "-e", "page-faults", "-G", "/nhmtap-none/*"], ["stat", "-e", "page-faults", "--for-each-cgroup", "/nhmtap-none/*"],
], ids=lambda arguments: " ".join(arguments[:-1]))
def test_what_needs_capabilities_is_refused_for_the_right_reason(nhmtap, before, arguments):
    result = nhmtap(*arguments, before=before)
    error = result.one("error")
    assert result.status == 2
    assert "user namespace" in error["why"] and "outside of the user namespace" in error["remedy"]
    assert "security module" not in result.err and "setcap" not in result.err


def test_processes_outside_of_the_namespace_are_refused_for_that(nhmtap, puppet):
    """Even if they belong to the same user."""
    result = nhmtap("stat", "-e", "page-faults:u", "-p", puppet.pid, before=ROOT_OF_ANOTHER)
    assert result.status == 2
    assert "outside of this user namespace" in result.one("error")["why"] or paranoid() > 2


@WHO
def test_doctor_says_that_capabilities_do_not_count(nhmtap, before):
    result = nhmtap("doctor", "--need", "software", before=before)
    for name in ("CAP_PERFMON", "CAP_BPF"):
        record = result.one("permission", name=name)
        assert (record["value"], record["ok"]) == ("in its user namespace", False)
        assert "outside of the user namespace" in record["remedy"]
    record = result.one("permission", name="user_namespace")
    assert (record["value"], record["ok"]) == ("nested", False)
    assert "count only in the first one" in record["why"]


def test_in_the_first_user_namespace_they_count(nhmtap):
    result = nhmtap("doctor", "--need", "software")
    assert result.one("permission", name="user_namespace")["value"] == "initial"
    assert result.one("permission", name="CAP_PERFMON")["ok"]


@pytest.mark.parametrize("mapped, counts", [("0 0 4294967295", True), ("0 1000 1", False), ("0 100000 65536", False)])
def test_a_map_of_users_tells_a_machine_that_is_not_there(explain, host, mapped, counts):
    event, = explain(host(hosts.WITHOUT_PMU, {"proc/self/uid_map": f"         {mapped}\n"}), "page-faults")
    assert event["name"] == ("page-faults" if counts else "page-faults:u")
