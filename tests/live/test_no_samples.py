# SPDX-License-Identifier: GPL-2.0-only
"""A profile without samples says why: in its record, in the table and on stderr. Each run is made so that one reason
holds and no other."""
import json

import pytest
from puppet import Puppet, wait_asleep

NAPS = ("--duration", "0.05")


def run_with_empty_cgroup(nhmtap, cgroup, *options):
    path, _ = cgroup
    return nhmtap("profile", "-e", "page-faults", "-c", "1", *NAPS, "-G", path + ("*" if "pattern" in options else ""))


def run_asleep(nhmtap, _):
    with Puppet() as puppet:
        wait_asleep(puppet.pid)
        return nhmtap("profile", "-e", "page-faults", "-c", "1", *NAPS, "-p", str(puppet.pid))


def run_without_major_faults(nhmtap, _):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "major-faults", "-c", "1", "-p", str(puppet.pid))
        puppet.do("faults=300")
        return nhmtap.interrupt(process)


def run(*arguments):
    return lambda nhmtap, _: nhmtap("profile", *arguments)


SHORT = ["/bin/true"] * 40  # each has some 50 faults, and events of its own
CHILDREN = """
import os, time
for _ in range(8):
    if not os.fork():
        while time.process_time() < 0.03:
            pass
        os._exit(0)
    os.wait()
"""
IN_THE_KERNEL = ["dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=20", "status=none"]
REASONS = {
    "period too long": (run("-e", "page-faults", "-c", "1000000", "--", "true"),
                        "counted", " times, and a sample comes every 1000000 times"),
    "spread": (run("-e", "page-faults", "-c", "1000", "--", "sh", "-c", "; ".join(SHORT)),
               "counted", "but on no CPU or thread the 1000 times that a sample takes"),
    "time spread": (run("-e", "cpu-clock", "-c", "120000000", "--", "/usr/bin/python3", "-c", CHILDREN),
                    "counted", "but on no CPU or thread the 120000000 ns that a sample takes"),
    "no occurrence": (run_without_major_faults, "counted", "it ran, and did not occur"),
    "clock": (run("-e", "cpu-clock", "-c", "1000000000000", "--", "true"),
              "counted", " ns, and a sample comes every 1000000000000 ns"),
    "side": (run("-e", "cpu-clock:u", "-c", "20000000", "--", *IN_THE_KERNEL),
             "counted", "each tick fell on the side that is excluded"),
    "empty cgroup": (run_with_empty_cgroup, "not_counted", "nothing ran in its cgroups"),
    "cgroups of a pattern": (lambda nhmtap, cgroup: run_with_empty_cgroup(nhmtap, cgroup, "pattern"),
                             "counted", "no sample fell in the cgroups that are measured"),
    "ticks elsewhere": (run("-e", "cpu-clock", "-G", "/nosuch*", "--duration", "0.2"),
                        "counted", "no sample fell in the cgroups that are measured, if there are any"),
    "asleep": (run_asleep, "not_counted", "its target never ran"),
    "never": (run("-e", "dummy", "-c", "1", "--", "true"), "not_counted", "it counts nothing"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_profile_without_samples_says_why(nhmtap, cgroup, reason):
    make, status, words = REASONS[reason]
    result = make(nhmtap, cgroup)
    record = result.one("profile")
    assert (record["status"], record["samples"]["aggregated"]) == (status, 0)
    told = record.get("no_samples") if status == "counted" else record["why"]
    assert words in told
    assert f"{record['event']}: no samples: {told}\n" in result.err
    assert result.err.count(told) == 1
    assert ("no_samples" in record) == (status == "counted")


def test_a_table_without_samples_says_why(nhmtap):
    result = nhmtap("profile", "-e", "page-faults", "-c", "1000000", "--format", "table", "--", "true")
    assert "# no samples: it occurred " in result.out


def test_each_interval_says_for_itself_and_a_run_with_samples_says_nothing(nhmtap, control):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "100", control.option, "-p", str(puppet.pid))
        for faults in (50, 300):
            puppet.do(f"faults={faults}")
            control.do("snapshot")
        control.do("stop")
        result = nhmtap.finish(process)
    few, many = result.of("profile")[:2]
    assert "50 times, and a sample comes every 100 times" in few["no_samples"]
    assert many["samples"]["aggregated"] == 3 and "no_samples" not in many
    assert "no samples" not in result.err


def test_in_a_session_of_several_a_line_about_an_event_names_its_activity(nhmtap, tmp_path):
    (tmp_path / "config").write_text(json.dumps({"activities": [
        {"name": name, "command": "profile", "event": event, "count": 1} for name, event in
        (("rare", "major-faults:k"), ("rarer", "major-faults:k"), ("never", "dummy"))]}))
    result = nhmtap("run", tmp_path / "config", "--", "/bin/true")
    assert sorted(result.err.splitlines()) == [
        "nhmtap: never: dummy: no samples: it counts nothing: it is there for the notes that come with it",
        "nhmtap: rare: major-faults:k: no samples: it ran, and did not occur",
        "nhmtap: rarer: major-faults:k: no samples: it ran, and did not occur",
    ]
