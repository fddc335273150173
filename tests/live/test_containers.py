# SPDX-License-Identifier: GPL-2.0-only
"""Targets that are cgroups by a pattern, or containers by their ids, and come and go."""
import os

import pytest

import containers
from cgroups import inside, remove
from puppet import Puppet
from running import FAULTS, Running, enter, total

ID = "c0ffee" + "0123456789abcdef" * 3 + "0123456789"
OTHER = ID[::-1]


def changes(result):
    return [(r["change"], r["cgroup"]) for r in result.of("target")]


@pytest.mark.parametrize("command", [["stat", "-G"], ["stat", "--for-each-cgroup"],
                                     ["profile", "-c", "1", "--by", "cgroup", "-G"]], ids=" ".join)
def test_those_that_come_are_measured_and_those_that_go_are_not_missed(nhmtap, tmp_path, cgroup, command):
    path, folder = cgroup
    running = Running(nhmtap, tmp_path / "out", *command, f"{path}/*.service")
    for times, name in enumerate(("a.service", "b.service", "a.service"), 1):
        os.mkdir(f"{folder}/{name}")
        running.told("appeared", times)
        with Puppet() as puppet:
            enter(f"{folder}/{name}", puppet.pid)
            puppet.do(f"faults={times * 100}")
            enter(os.path.dirname(folder), puppet.pid)
        remove(f"{folder}/{name}")
        running.told("gone", times)
    os.mkdir(f"{folder}/other.scope")
    result = running.end()
    remove(f"{folder}/other.scope")
    assert total(result) == 600
    assert changes(result) == [(change, f"{path}/{name}.service") for name in "aba" for change in ("appeared", "gone")]
    assert not [r for r in result.records if "cgroups_missing" in r]
    assert result.one("start")["target"]["cgroups"] == [f"{path}/*.service"]
    if "-G" not in command:
        assert [sum(r["value"] for r in result.of("count", cgroup=f"{path}/{name}.service")) for name in "ab"] == [400, 200]
        # A cgroup has records while it is there, and none before or after.
        for name in "ab":
            told = [(r["seq"], r["type"]) for r in result.records if r.get("cgroup") == f"{path}/{name}.service"]
            assert told[0][1] == "target"
    if command[0] == "profile":
        assert {(e["cgroup"], e["samples"]) for e in result.entries()} == {
            (f"{path}/a.service", 100), (f"{path}/b.service", 200), (f"{path}/a.service", 300)}


def test_what_is_in_one_that_fits_is_counted_once(nhmtap, tmp_path, cgroup):
    path, folder = cgroup
    for name in ("a", "a/in", "b"):
        os.mkdir(f"{folder}/{name}")
    running = Running(nhmtap, tmp_path / "out", "stat", "-G", f"{path}/b,{path}/**")
    running.told("appeared")
    with Puppet() as puppet:
        for name in ("a/in", "b"):
            enter(f"{folder}/{name}", puppet.pid)
            puppet.do("faults=100")
        enter(os.path.dirname(folder), puppet.pid)
        result = running.end()
    for name in ("a/in", "a", "b"):
        remove(f"{folder}/{name}")
    assert total(result) == 200
    assert changes(result) == [("appeared", f"{path}/a")]


@pytest.mark.parametrize("command", [["stat", "-G"], ["stat", "--for-each-cgroup"],
                                     ["profile", "-c", "1", "--by", "cgroup", "-G"]], ids=" ".join)
def test_however_many_come_and_go_no_descriptor_and_no_memory_stays(nhmtap, tmp_path, cgroup, command, monkeypatch):
    # What AddressSanitizer keeps back of what was freed would count.
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
    path, folder = cgroup
    running = Running(nhmtap, tmp_path / "out", *command, f"{path}/*", interval=20)

    def make(first, last):
        for i in range(first, last):
            os.mkdir(f"{folder}/{i}")
        running.told("appeared", last)
        for i in range(first, last):
            os.rmdir(f"{folder}/{i}")
        running.told("gone", last)

    make(0, 100)
    descriptors, memory = running.descriptors(), running.resident()
    for first in range(100, 1100, 100):
        make(first, first + 100)
    assert running.descriptors() == descriptors
    assert running.resident() - memory < 1024, "KiB: a cgroup's events and rows are a few KiB"
    running.end()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return containers.static(tmp_path_factory.mktemp("root"), "puppet")


def test_a_container_is_followed_by_the_beginning_of_its_id_wherever_it_runs(nhmtap, tmp_path, cgroup, root):
    """It is stopped, removed and made again three times: runc's own, beside another one."""
    path, folder = cgroup
    bundle, other = (containers.bundle(tmp_path / name[:6], root, "/puppet", cgroup=f"{path}/docker/{name}")
                     for name in (ID, OTHER))
    running = Running(nhmtap, tmp_path / "out", "profile", "-c", "1", "--by", "cgroup,symbol", "--container", ID[:12])
    with containers.Container(other, f"nhmtap-other-{os.getpid()}") as beside:
        for times in (1, 2, 3):
            with containers.Container(bundle, f"nhmtap-{os.getpid()}") as container:
                running.told("appeared", times)
                container.do("faults=200")
                beside.do("faults=1000")
                running.wait(lambda record: any(e["samples"] >= 200 for e in record.get("entries", ())), times)
            running.told("gone", times)
    result = running.end()
    os.rmdir(f"{folder}/docker")
    own = f"{path}/docker/{ID}"
    assert changes(result) == [("appeared", own), ("gone", own)] * 3
    assert {(r["container.id"], r["container.runtime"]) for r in result.of("target")} == {(ID, "docker")}
    # The page in which the code of the faults lies is one more, if it is not there yet.
    touched = [e for e in result.entries() if e["samples"] >= 200]
    assert len(touched) == 3 and all(e["samples"] <= 201 for e in touched)
    assert {(e["cgroup"], e["container.id"]) for e in touched} == {(own, ID)}


@pytest.mark.parametrize("prefix", ["", "C0FFEE", "x", ID + "0"])
def test_what_is_no_beginning_of_an_id_is_refused(nhmtap, prefix):
    result = nhmtap("stat", "--container", prefix, "--duration", "0.01")
    assert result.status == 1 and "container" in result.err
