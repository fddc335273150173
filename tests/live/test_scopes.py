# SPDX-License-Identifier: GPL-2.0-only
"""Threads, cgroups and CPUs: what is counted, and what is reported separately. Every count is known
by construction, see tests/programs/puppet.c."""
import os
import re
import resource
import subprocess

import cgroups
import pytest
import records
from cgroups import inside
from puppet import Puppet, command, online, pinned

CPUS, ALL = sorted(os.sched_getaffinity(0)), online()
FAULTS = ["-e", "page-faults"]


def values(result, key):
    """{key: count} of one event."""
    return {record[key]: record["value"] for record in result.of("count")}


@pytest.fixture
def below(cgroup):
    """The folders of two cgroups inside one."""
    folders = [f"{cgroup[1]}/{name}" for name in ("one", "two")]
    for folder in folders:
        os.mkdir(folder)
    yield folders
    for folder in folders:
        cgroups.remove(folder)


# --- threads --------------------------------------------------------------------------------------


def test_a_thread_is_counted_and_the_others_of_its_process_are_not(nhmtap):
    with Puppet(workers=2) as puppet:
        tid = puppet.do("worker=1,0")
        process = nhmtap.attach("stat", *FAULTS, "-t", tid)
        for step in ["worker=1,300", "worker=0,50", "faults=7", "thread=9", "worker=1,20"]:
            puppet.do(step)
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 320
    assert result.one("start")["target"] == {"tids": [tid]}


def test_a_thread_is_sampled(nhmtap):
    with Puppet(workers=2) as puppet:
        tids = [puppet.do(f"worker={n},0") for n in range(2)]
        process = nhmtap.attach("profile", *FAULTS, "-c", "1", "--by", "tid", "-t", tids[0])
        puppet.do("worker=0,200")
        puppet.do("worker=1,50")
        result = nhmtap.interrupt(process)
    assert {entry["tid"]: entry["samples"] for entry in result.entries()} == {tids[0]: 200}


def test_the_run_ends_with_the_last_of_the_threads(nhmtap):
    with Puppet(workers=1) as puppet:
        tids = [puppet.pid, puppet.do("worker=0,0")]
        process = nhmtap.attach("stat", *FAULTS, "-t", ",".join(map(str, tids)))
        puppet.do("worker=0,20")
        puppet.end()
        result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"]) == (0, "exited")
    assert result.count("page-faults") >= 20


def test_a_thread_that_there_is_not_is_named(nhmtap):
    with Puppet() as puppet:
        gone = puppet.do("thread=1")
    error = nhmtap("stat", *FAULTS, "-t", gone).one("error")
    assert (error["asked"], error["errno"]) == (f"thread {gone}", "ESRCH")


def test_each_thread_of_a_process_is_counted_apart(nhmtap):
    with Puppet(workers=3) as puppet:
        tids = [puppet.do(f"worker={n},0") for n in range(3)]
        process = nhmtap.attach("stat", *FAULTS, "--per", "thread", "-p", puppet.pid)
        for n in range(3):
            puppet.do(f"worker={n},{100 + n}")
        puppet.do("faults=7")
        result = nhmtap.interrupt(process)
    expected = {tid: 100 + n for n, tid in enumerate(tids)} | {puppet.pid: 7}
    assert values(result, "tid") == expected
    assert {record["comm"] for record in result.of("count")} == {"puppet"}


# --- children -------------------------------------------------------------------------------------


def test_five_hundred_processes_are_each_counted(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", *FAULTS, "-p", puppet.pid)
        puppet.do("vforks=500,3")
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 1500


def test_intervals_over_children_that_come_and_go_add_up(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", *FAULTS, "-I", "5", "-p", puppet.pid)
        puppet.do("vforks=500,3")
        result = nhmtap.interrupt(process)
    assert sum(record["value"] for record in result.of("count")) == 1500
    assert min(record["value"] for record in result.of("count")) >= 0


# --- cgroups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["{path}", "{relative}", "{folder}", "{folder}/", "{link}", "{link}/../{relative}"])
def test_a_cgroup_is_counted_and_nobody_else(nhmtap, tmp_path, cgroup, spelling):
    path, folder = cgroup
    (tmp_path / "link").symlink_to(folder)
    name = spelling.format(path=path, relative=path[1:], folder=folder, link=tmp_path / "link")
    with Puppet(before=inside(folder)) as puppet, Puppet() as other:
        process = nhmtap.attach("stat", *FAULTS, "-G", name)
        puppet.do("faults=300")
        other.do("faults=1000")
        puppet.do("vforks=10,5")
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 350
    target = result.one("start")["target"]
    assert target["cgroups"] == [name] and target["cpus"]


def test_a_cgroup_that_is_named_through_another_mount_and_a_link_too_is_counted_once(nhmtap, tmp_path, cgroup):
    path, folder = cgroup
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "mount").mkdir()
    names = f"{tmp_path}/mount{path},{path},{tmp_path}/link"
    mounted = 'mount --make-rprivate /; mount -t cgroup2 none "$1"; shift; exec "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-ec", mounted, "sh", tmp_path / "mount", *nhmtap.command("stat", *FAULTS, "-G", names, "--"),
                           *inside(folder), *command("faults=3000")], capture_output=True, text=True, check=True)
    said = "".join(line for line in done.stdout.splitlines(True) if line.startswith("{"))  # the puppet speaks, too
    counted, = [record["value"] for record in records.parse(said) if record["type"] == "count"]
    assert 3000 <= counted < 4000


@pytest.mark.parametrize("names", ["{tmp}/mount{path}/*", "{tmp}/link/o*", "{tmp}/link/../{path}/o?e,{tmp}/mount/**,{path}/*"])
def test_a_pattern_through_another_mount_or_a_link_finds_what_is_there(nhmtap, tmp_path, cgroup, names):
    path, folder = cgroup
    (tmp_path / "link").symlink_to(folder)
    for made in (tmp_path / "mount", f"{folder}/one"):
        os.mkdir(made)
    mounted = 'mount --make-rprivate /; mount -t cgroup2 none "$1"; shift; exec "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-ec", mounted, "sh", tmp_path / "mount",
                           *nhmtap.command("profile", *FAULTS, "-c", "1", "-G", names.format(tmp=tmp_path, path=path), "--by", "cgroup,pid", "--"),
                           *inside(f"{folder}/one"), *command("faults=3000")], capture_output=True, text=True, check=True)
    found = records.parse("".join(line for line in done.stdout.splitlines(True) if line.startswith("{")))  # the puppet speaks, too
    pid = found[-1]["command"]["pid"]
    counted, = [e["samples"] for r in found for e in r.get("entries", []) if r["type"] == "profile" and (e["cgroup"], e["pid"]) == (f"{path}/one", pid)]
    assert 3000 <= counted + sum(found[-1]["samples"]["lost"].values()) and counted < 4000
    assert not [r for r in found if r["type"] == "warning"]


@pytest.mark.parametrize("name", ["{tmp}", "{tmp}/gone", "{tmp}/file", "/proc/self"])
def test_a_name_that_leads_to_no_cgroup_is_refused(nhmtap, tmp_path, cgroup, name):
    (tmp_path / "gone").symlink_to(cgroup[1] + "/gone")
    (tmp_path / "file").symlink_to(cgroup[1] + "/cgroup.procs")
    result = nhmtap("stat", *FAULTS, "-G", name.format(tmp=tmp_path), "--", "true")
    assert result.status == 2 and "there is no cgroup" in result.one("error")["why"]


def test_a_cgroup_is_sampled_and_nobody_else(nhmtap, cgroup):
    path, folder = cgroup
    with Puppet(before=inside(folder)) as puppet, Puppet() as other:
        process = nhmtap.attach("profile", *FAULTS, "-c", "1", "--by", "cgroup,pid", "-G", path)
        puppet.do("faults=300")
        other.do("faults=1000")
        result = nhmtap.interrupt(process)
    entry, = result.entries()
    assert (entry["cgroup"], entry["pid"], entry["samples"]) == (path, puppet.pid, 300)


def test_each_cgroup_is_counted_apart_and_one_with_those_below_it(nhmtap, cgroup, below):
    path, _ = cgroup
    with Puppet(before=inside(below[0])) as one, Puppet(before=inside(below[1])) as two:
        process = nhmtap.attach("stat", *FAULTS, "--for-each-cgroup",
                                f"{path}/one,{path}/two,{path}")
        one.do("faults=200")
        two.do("faults=30")
        result = nhmtap.interrupt(process)
    assert values(result, "cgroup") == {f"{path}/one": 200, f"{path}/two": 30, path: 230}


def test_several_cgroups_are_counted_together(nhmtap, cgroup, below):
    path, _ = cgroup
    with Puppet(before=inside(below[0])) as one, Puppet(before=inside(below[1])) as two:
        process = nhmtap.attach("stat", *FAULTS, "-G", f"{path}/one,{path}/two")
        one.do("faults=200")
        two.do("faults=30")
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 230


def test_a_cgroup_counts_while_a_command_outside_of_it_runs(nhmtap, cgroup, tmp_path):
    path, _ = cgroup
    result = nhmtap.into(tmp_path / "out", "stat", *FAULTS, "-G", path, "--",
                         *command("faults=500", "exit=3"))
    assert result.status == 3
    assert result.count("page-faults") == 0


@pytest.mark.parametrize("cpu", CPUS[:2])
def test_a_cgroup_on_one_cpu(nhmtap, cgroup, cpu):
    path, folder = cgroup
    with Puppet(before=inside(folder, *pinned(CPUS[0]))) as puppet:
        process = nhmtap.attach("stat", *FAULTS, "-G", path, "-C", cpu)
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == (300 if cpu == CPUS[0] else 0)


def test_a_cgroup_that_there_is_not_is_refused(nhmtap, cgroup):
    path, folder = cgroup
    result = nhmtap("stat", *FAULTS, "-G", f"{path}/nowhere")
    assert result.status == 2
    error = result.one("error")
    assert error["errno"] == "ENOENT"
    assert f"{folder}/nowhere" in error["why"]


# --- CPUs -----------------------------------------------------------------------------------------


def topology(cpu, name):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/{name}", encoding="ascii") as file:
        return int(file.read())


def test_sixty_four_events_on_each_cpu_are_counted_apart(nhmtap, cgroup):
    path, folder = cgroup
    with Puppet(before=inside(folder, *pinned(CPUS[0]))) as first, \
            Puppet(before=inside(folder, *pinned(CPUS[-1]))) as last:
        process = nhmtap.attach("stat", "-e", ",".join(["page-faults"] * 64), "-G", path, "--per", "cpu")
        first.do("faults=200")
        last.do("faults=30")
        result = nhmtap.interrupt(process)
    expected = {cpu: 0 for cpu in ALL}
    expected[CPUS[0]] += 200
    expected[CPUS[-1]] += 30
    for cpu in ALL:
        assert [r["value"] for r in result.of("count", cpu=cpu)] == [expected[cpu]] * 64


def test_keys_combine(nhmtap, cgroup, below):
    path, _ = cgroup
    with Puppet(before=inside(below[0], *pinned(CPUS[0]))) as one, \
            Puppet(before=inside(below[1], *pinned(CPUS[-1]))) as two:
        process = nhmtap.attach("stat", *FAULTS, "--for-each-cgroup", f"{path}/one,{path}/two",
                                "--per", "cpu")
        one.do("faults=200")
        two.do("faults=30")
        result = nhmtap.interrupt(process)
    found = {(r["cgroup"], r["cpu"]): r["value"] for r in result.of("count") if r["value"]}
    assert found == {(f"{path}/one", CPUS[0]): 200, (f"{path}/two", CPUS[-1]): 30}


@pytest.mark.parametrize("keys, of", [
    ("core", lambda cpu: (topology(cpu, "physical_package_id"), topology(cpu, "core_id"))),
    ("socket", lambda cpu: (topology(cpu, "physical_package_id"),)),
])
def test_cores_and_sockets_are_those_of_sysfs(nhmtap, cgroup, keys, of):
    path, folder = cgroup
    with Puppet(before=inside(folder, *pinned(CPUS[-1]))) as puppet:
        process = nhmtap.attach("stat", *FAULTS, "-G", path, "--per", keys)
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    names = ["socket", "core"][:len(of(CPUS[0]))]
    found = {tuple(r[name] for name in names): r["value"] for r in result.of("count")}
    assert found == {of(cpu): 300 if of(cpu) == of(CPUS[-1]) else 0 for cpu in ALL}


def test_rows_add_up_to_the_whole(nhmtap):
    result = nhmtap("stat", "-e", "cpu-clock", "-a", "--per", "cpu", "-I", "50", "--duration", "0.2")
    assert {r["cpu"] for r in result.of("count")} == set(ALL)
    for cpu in ALL:
        # A CPU's clock runs all the time.
        assert sum(r["value"] for r in result.of("count", cpu=cpu)) >= 0.2e9


def test_nothing_is_said_of_cpus_that_stay(nhmtap):
    result = nhmtap("stat", "-e", "page-faults,cs,cpu-clock", "-a", "-I", "2", "--duration", "0.5")
    assert result.of("count")
    assert result.of("hotplug") == []
    assert not [record for record in result.records if "cpus_missing" in record]


def test_repeats_are_summed_up_for_each_row(nhmtap):
    result = nhmtap("stat", "-e", "cpu-clock", "-r", "3", "-a", "--per", "cpu", "--", "true")
    assert {s["cpu"]: s["counted"] for s in result.of("summary")} == {cpu: 3 for cpu in ALL}


def test_too_few_descriptors_on_all_cpus_say_how_many_it_takes(nhmtap):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    result = nhmtap("stat", "-e", ",".join(["cs"] * 64), "-a", "--duration", "1", preexec_fn=limit)
    assert result.status == 2
    error = result.one("error")
    assert error["errno"] == "EMFILE"
    assert f"{64 * len(ALL)} descriptors (64 events on {len(ALL)} CPUs" in error["why"]
    assert "fewer events or CPUs" in error["remedy"]


# --- people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", ["C", "de_DE.UTF-8", "nowhere"])
def test_the_table_is_aligned_and_grouped_in_every_locale(nhmtap, locale):
    result = nhmtap("stat", "-e", "cpu-clock,task-clock", "-a", "--per", "cpu", "--duration", "0.1",
                    "--format", "table", env=os.environ | {"LC_ALL": locale})
    rows, _ = (block.splitlines() for block in result.out.split("\n\n"))  # the times are below
    shape = re.compile(r"CPU \d+ +\d{1,3}(,\d{3})+ ns +(cpu|task)-clock")
    assert len(rows) == 2 * len(ALL)
    assert all(shape.fullmatch(row) for row in rows), result.out
    assert len({row.index(" ns ") for row in rows}) == 1
