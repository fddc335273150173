# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups that are removed and made again while they are measured."""
import datetime
import os
import shlex
import subprocess
import time

import pytest

import puppet
from cgroups import inside, remove
from puppet import Puppet
from records import held, program
from running import FAULTS, MISSED, OTHERS, Running, enter, lost, missed, total
from sessions import faults, until, write

MIB = 1 << 20


@pytest.fixture
def child(cgroup):
    """A cgroup below that of the test. The test may remove it."""
    path, folder = f"{cgroup[0]}/child", f"{cgroup[1]}/child"
    os.mkdir(folder)
    yield path, folder
    if os.path.exists(folder):
        remove(folder)


@pytest.mark.parametrize("command", [["stat", "-G"], ["stat", "--for-each-cgroup"],
                                     ["profile", "-c", "1", "--by", "cgroup,pid", "-G"]], ids=" ".join)
def test_one_that_is_made_again_is_measured_again(nhmtap, tmp_path, child, command):
    path, folder = child
    running = Running(nhmtap, tmp_path / "out", *command, path)
    with Puppet() as puppet:
        enter(folder, puppet.pid)
        puppet.do("faults=300")
        enter(os.path.dirname(os.path.dirname(folder)), puppet.pid)
        remove(folder)
        running.told("gone")
        puppet.do("faults=1000")
        os.mkdir(folder)
        made = datetime.datetime.now(datetime.timezone.utc).isoformat()
        running.told("appeared")
        enter(folder, puppet.pid)
        puppet.do("faults=200")
        result = running.end()
    assert total(result) == 500
    assert [(r["change"], r["cgroup"]) for r in result.of("target")] == [("gone", path), ("appeared", path)]
    gone, appeared = (r["seq"] for r in result.of("target"))
    intervals = [r for r in result.records if "start_time" in r]
    away = [r for r in intervals if r.get("cgroups_missing") == [path]]
    assert away and all(gone < r["seq"] for r in away)
    assert not [r for r in intervals if "cgroups_missing" in r and r not in away]
    # It is found within two intervals, so at most one interval lies between.
    assert len([r for r in intervals if r["start_time"] > made and r["seq"] < appeared]) <= 1
    if command[0] == "profile":
        assert {(e["cgroup"], e["pid"]) for e in result.entries()} == {(path, puppet.pid)}


CONTAINER = "facade" + "0123456789abcdef" * 4


@pytest.mark.parametrize("command", [["stat", "--for-each-cgroup"], ["profile", "-c", "1", "--by", "cgroup", "-G"]],
                         ids=["counts", "entries"])
def test_records_say_whose_a_cgroup_is(nhmtap, cgroup, command):
    path, folder = (f"{at}/docker-{CONTAINER[:64]}.scope" for at in cgroup)
    os.mkdir(folder)
    with Puppet(before=inside(folder)) as puppet:
        process = nhmtap.attach(command[0], *FAULTS, *command[1:], path)
        puppet.do("faults=30")
        result = nhmtap.interrupt(process)
    remove(folder)
    assert {(r["cgroup"], r["container.id"], r["container.runtime"])
            for r in result.entries() + result.of("count")} == {(path, CONTAINER[:64], "docker")}


def test_one_that_is_made_again_at_once_is_another_one_all_the_same(nhmtap, tmp_path, child):
    path, folder = child
    running = Running(nhmtap, tmp_path / "out", "stat", "-G", path, interval=60000)
    remove(folder)
    os.mkdir(folder)
    running.told("appeared")
    with Puppet() as puppet:
        enter(folder, puppet.pid)
        puppet.do("faults=200")
        result = running.end()
    assert total(result) == 200
    assert [r["change"] for r in result.of("target")] == ["gone", "appeared"]
    assert result.of("count")[0]["cgroups_missing"] == [path]


def test_one_that_goes_leaves_the_others_as_they_are(nhmtap, tmp_path, cgroup, child):
    path, folder = child
    stays = f"{cgroup[1]}/stays"
    os.mkdir(stays)
    running = Running(nhmtap, tmp_path / "out", "stat", "--for-each-cgroup", f"{path},{cgroup[0]}/stays")
    with Puppet(before=inside(stays)) as puppet:
        time.sleep(0.1)  # the faults of its start come before the ones that are compared
        puppet.do("faults=300")
        remove(folder)
        running.told("gone")
        puppet.do("faults=200")
        result = running.end()
    remove(stays)
    assert sum(r["value"] for r in result.of("count", cgroup=f"{cgroup[0]}/stays")) >= 500
    assert not [r for r in result.of("count", cgroup=f"{cgroup[0]}/stays") if "cgroups_missing" in r]
    assert sum(r["value"] for r in result.of("count", cgroup=path)) == 0
    assert [r for r in result.of("count", cgroup=path) if r.get("cgroups_missing") == [path]]


@pytest.mark.parametrize("command", [["stat"], ["profile", "-c", "1", "--by", "cgroup"]], ids=["stat", "profile"])
def test_however_often_it_is_made_again_no_descriptor_stays(nhmtap, tmp_path, child, command):
    path, folder = child
    running = Running(nhmtap, tmp_path / "out", *command, "-G", path, interval=20)
    before = running.descriptors()
    for times in range(1, 11):
        remove(folder)
        running.told("gone", times)
        os.mkdir(folder)
        running.told("appeared", times)
    assert running.descriptors() == before
    result = running.end()
    assert [r["change"] for r in result.of("target")] == ["gone", "appeared"] * 10


def test_the_table_says_it(nhmtap, tmp_path, child):
    path, folder = child
    out = tmp_path / "out"
    process = nhmtap.start("stat", *FAULTS, "-G", path, "-I", "50", "--format", "table", "-o", out)
    for said, change in (("has gone", lambda: remove(folder)), ("is there, and measured", lambda: os.mkdir(folder))):
        deadline = time.monotonic() + 60
        while not out.exists() or not out.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        change()
        while f"# cgroup {path} {said}" not in out.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert nhmtap.interrupt(process).status == 0


WITHOUT_HANDLES = ["setpriv", "--bounding-set", "-dac_read_search"]  # open_by_handle_at() needs it


def test_one_that_was_gone_before_anybody_looked_has_its_path(nhmtap, tmp_path, cgroup):
    """The cgroup exists only while nhmtap is stopped."""
    path, folder = f"{cgroup[0]}/short", f"{cgroup[1]}/short"
    script = f"""mkdir {folder}; sh -c 'echo $$ > {folder}/cgroup.procs; exec {program("names")} here=200'
        while ! rmdir {folder}; do sleep 0.01; done"""
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "-c", "1", "-a", "--by", "symbol,cgroup", "--",
                         *held("sh", "-c", script))
    assert [e["samples"] for e in result.entries(cgroup=path) if e["code"].get("symbol") == "here"] == [200]


@pytest.mark.plain  # a sanitizer's memory would count too
def test_cgroups_without_end_take_little_memory_and_are_all_in_the_sum(nhmtap, tmp_path, cgroup):
    """Those of a round are known to have gone when cgroups that are made after it were found three times."""
    path, folder = cgroup
    running = Running(nhmtap, tmp_path / "out", "stat", "-a", "--per", "cgroup", interval=86400000)
    with Puppet() as puppet:
        for turn in range(3):
            puppet.do(f"cgroups={folder},2500,10")
            for mark in range(3):
                os.mkdir(f"{folder}/mark{turn}{mark}")
                until(lambda text=f"{path}/mark{turn}{mark}": text in (tmp_path / "out").read_text())
                os.rmdir(f"{folder}/mark{turn}{mark}")
        result = running.end()
    counts = [(r["cgroup"], r["value"]) for r in result.of("count")]
    apart = [n for name, n in counts if name.startswith(f"{path}/") and "mark" not in name]
    assert 500 < len(apart) <= 4096 + 2500 and max(apart) == 10
    rest = sum(n for name, n in counts if name in (OTHERS, MISSED))
    assert 75000 <= sum(apart) + rest and rest >= 10000
    assert result.one("end")["overhead"]["max_rss_bytes"] <= 48 * MIB


@pytest.mark.parametrize("command", [["stat", "-G"], ["stat", "--for-each-cgroup"], ["profile", "-c", "1", "--by", "pid", "-G"],
                                     ["mem", "-c", "1", "--by", "page,cgroup", "-G"]], ids=" ".join)
def test_patterns_beside_named_ones_are_measured_from_the_first_instruction_too(nhmtap, tmp_path, cgroup, command):
    """200 cgroups, each there for less than a millisecond, which all but the first ten fit two patterns, and a named one with a backslash."""
    path, folder = cgroup
    named = f"{folder}/a\\x2db"
    os.mkdir(named)
    result = nhmtap.into(tmp_path / "out", command[0], *FAULTS, *command[1:], f"{path}/a\\x2db,{path}/[0-9]*,{path}/?*[0-9]", "--",
                         *inside(shlex.quote(named), *puppet.command(f"cgroups={folder},200,50", "faults=300")))
    remove(named)
    assert total(result) + lost(result) >= 200 * 50 + 300
    assert not result.of("warning", cause="pattern_unfit"), "they have gone, but they have fitted"
    assert not [r for r in result.records if "cgroups_late" in r] and not result.of("warning", cause="cgroups_late")
    assert all(r["value_of_samples"] for kind in ("profile", "mem") for r in result.of(kind) if r.get("part", 1) == 1)
    if "--for-each-cgroup" in command:
        counts = {r["cgroup"]: r["value"] for r in result.of("count")}
        assert counts[f"{path}/a\\x2db"] >= 300 - counts.get(MISSED, 0)


@pytest.mark.parametrize("expected", [[], ["--expect", "page-faults:u<500"]], ids=["no expectation", "an expectation"])
def test_what_one_has_counted_is_not_forgotten_when_it_goes_and_another_comes(nhmtap, tmp_path, cgroup, expected):
    """The second one counts nothing."""
    path, folder = cgroup
    running = Running(nhmtap, tmp_path / "out", "stat", "--for-each-cgroup", f"{path}/*", *expected)
    with Puppet() as puppet:
        os.mkdir(f"{folder}/first")
        running.told("appeared")
        enter(f"{folder}/first", puppet.pid)
        puppet.do("faults=1000")
        enter(os.path.dirname(folder), puppet.pid)
        remove(f"{folder}/first")
        running.told("gone")
        gone = running.records()[-1]["seq"]
        running.wait(lambda record: record["type"] == "count" and record["seq"] >= gone)
        os.mkdir(f"{folder}/second")
        running.told("appeared", 2)
        result = running.end()
    assert "not counted" not in result.err
    outcomes = {r["cgroup"]: r["outcome"] for r in result.of("expectation")}
    assert outcomes == ({f"{path}/first": "failed", f"{path}/second": "cannot_tell"} if expected else {})
    assert result.status == (4 if expected else 0)


@pytest.mark.parametrize("per", ["cgroup", "cpu,cgroup"])
def test_means_of_executions_are_of_one_cgroup_each(nhmtap, cgroup, tmp_path, per):
    """Each execution has a cgroup of its own, which goes or stays, beside one that all have."""
    path, folder = cgroup
    script = f"""echo >> {tmp_path}/turns; turn=$(wc -l < {tmp_path}/turns)
        for name in all stays$turn goes$turn; do
            mkdir -p {folder}/$name; sleep 0.3
            sh -c "echo \\$\\$ > {folder}/$name/cgroup.procs; exec {shlex.join(map(str, puppet.command('faults=1000')))}"
        done
        sleep 0.3; rmdir {folder}/goes$turn; sleep 0.3"""
    result = nhmtap.into(tmp_path / "out", "stat", *FAULTS, "--for-each-cgroup", f"{path}/*", "--per", per, "-r", "3", "--",
                         "sh", "-ec", script)
    assert result.status == 0, result.err
    keys = ("cgroup", "cpu")
    counted = {}
    for record in result.of("count", status="counted"):
        counted.setdefault(tuple(record.get(key) for key in keys), []).append(record["value"])
    means = {tuple(r.get(key) for key in keys): (r["counted"], r["mean"]) for r in result.of("summary") if r["counted"]}
    assert means == {key: (len(values), pytest.approx(sum(values) / len(values))) for key, values in counted.items()}
    named = [f"{path}/{name}" for name in ("all", *(f"{what}{turn}" for what in ("stays", "goes") for turn in (1, 2, 3)))]
    assert {cgroup for cgroup, _ in means} >= set(named)
    assert all(r["executions"] == 3 for r in result.of("summary"))


@pytest.mark.parametrize("command", [["stat"], ["profile", "-c", "1"]], ids=" ".join)
def test_a_pattern_that_fits_no_cgroup_is_told_with_those_that_may_be_meant(nhmtap, tmp_path, child, command):
    path, _ = child
    patterns = [f"{path[:-2]}dl/*", f"{os.path.dirname(path)}/c*", "/there/is/no/such/*"]
    result = nhmtap.into(tmp_path / "out", *command, *FAULTS, "-G", ",".join(patterns), "-I", "100", "--interval-count", "3")
    told = {r["why"]: r.get("remedy", "") for r in result.of("warning", cause="pattern_unfit")}
    assert list(told) == [f"no cgroup fits the pattern '{pattern}'" for pattern in (patterns[0], patterns[2])]
    assert path in told[f"no cgroup fits the pattern '{patterns[0]}'"]
    assert all(why in result.err for why in told)


@pytest.mark.parametrize("form", ["docker-{}.scope", "kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice"])
def test_check_warns_of_what_finds_no_cgroup_now_and_of_nothing_else(nhmtap, tmp_path, child, form):
    """A pod's uid has '_' in a path of systemd, and '-' elsewhere."""
    path, folder = child
    os.mkdir(f"{folder}/{form.format(CONTAINER[:64])}")
    good = {"container": CONTAINER[:9] if "docker" in form else "01234567-89ab-cdef-0123-456789abcdef", "patterns": f"{path}/*", "all": None}
    asked = {**good, "badpatterns": f"{path[:-2]}dl/*,{path}/*,/there/is/no/such/*", "badcontainer": "deadbeef"}
    config = write(tmp_path / "config", {"activities": [
        {**faults(name, "stat"), **({"all_cpus": True, "per": "cgroup"} if text is None else
                                                  {"container" if "container" in name else "cgroup": text})}
        for name, text in asked.items()]})
    done = nhmtap("run", "--check", config)
    assert done.status == 0
    told = [(r["activity"], r["why"].split("'")[1]) for r in done.of("warning", cause="pattern_unfit")]
    assert told == [("badpatterns", f"{path[:-2]}dl/*"), ("badpatterns", "/there/is/no/such/*"), ("badcontainer", "deadbeef")]
    assert path in done.of("warning")[0]["remedy"] and all(r["why"] in done.err for r in done.of("warning"))
    remove(f"{folder}/{form.format(CONTAINER[:64])}")


def test_an_id_that_no_container_has_is_told(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", *FAULTS[:2], "--container", "deadbeef", "--duration", "0.1")
    told = result.one("warning", cause="pattern_unfit")
    assert "'deadbeef'" in told["why"] and told["why"] in result.err


@pytest.mark.parametrize("command", [["stat", "--per", "cpu"], ["mem", "-c", "1", "--stream"]], ids=" ".join)
def test_where_each_cgroup_has_events_of_its_own_a_warning_tells_what_may_be_missing(nhmtap, tmp_path, cgroup, command):
    path, folder = cgroup
    result = nhmtap.into(tmp_path / "out", command[0], *FAULTS, *command[1:], "-G", f"{path}/*", "--",
                         *puppet.command(f"cgroups={folder},300,50"))
    assert total(result) < 300 * 50
    late = next(r["cgroups_late"] for r in result.records if "cgroups_late" in r)
    told = result.one("warning", cause="cgroups_late")
    assert (told["cgroups"], told["unseen"]) == (late["cgroups"], late["unseen"])
    assert told["why"] in result.err and "-a" in told["remedy"]


@pytest.mark.parametrize("target", [["-a"], ["-G", "{path}"]], ids=["all", "the cgroup"])
@pytest.mark.parametrize("before", [[], WITHOUT_HANDLES], ids=["handles", "no handles"])
def test_one_that_was_there_before_has_its_path(nhmtap, cgroup, target, before):
    path, folder = cgroup
    with Puppet(before=inside(folder)) as puppet:
        process = nhmtap.attach("profile", *FAULTS, "-c", "1", "--by", "pid,cgroup",
                                *(word.format(path=path) for word in target), before=before)
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    assert [(e["cgroup"], e["samples"]) for e in result.entries(pid=puppet.pid)] == [(path, 300)]


def test_without_handles_the_hierarchy_is_not_walked_for_each_cgroup(nhmtap, tmp_path, cgroup):
    """Twenty cgroups are gone when their paths are looked up. Each walk of the hierarchy opens the root."""
    folders = [f"{cgroup[1]}/{i}" for i in range(20)]
    script = "\n".join(f"mkdir {f}; sh -c 'echo $$ > {f}/cgroup.procs; exec true'; while ! rmdir {f}; do sleep 0.01; done"
                       for f in folders)
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-qq", "-o", trace, "-e", "trace=openat,open", *WITHOUT_HANDLES,
                           *nhmtap.command("profile", *FAULTS, "-c", "1", "--by", "cgroup", "-o", tmp_path / "out", "--",
                                           "sh", "-c", script)],
                          check=True, timeout=120, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0
    walks = [line for line in trace.read_text().splitlines() if f'"{os.path.dirname(cgroup[1])}"' in line]
    assert len(walks) <= 3, walks


def test_those_that_have_gone_are_forgotten(nhmtap, tmp_path, cgroup, monkeypatch):
    """If they were kept, each round would take 750 KiB more. In some rounds, memory may grow
    because of other programs, which are sampled too."""
    # AddressSanitizer's quarantine of freed memory would count.
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
    run = Running(nhmtap, tmp_path / "out", "profile", "-c", "1", "-a", "--by", "module,cgroup", interval=50)

    def make(times):
        for i in range(times):
            os.mkdir(f"{cgroup[1]}/{'x' * 200}{i}")
            os.rmdir(f"{cgroup[1]}/{'x' * 200}{i}")
            if i % 100 == 0:
                time.sleep(0.02)  # time to read the notes: a ring holds only some hundred

    make(1000)
    memory = [run.resident()]
    for _ in range(12):
        make(3000)  # with paths of 250 bytes
        memory.append(run.resident())
        if memory[-1] - memory[-2] < 500:
            break
    result = run.end()
    assert result.one("end")["names"]["notes_lost"] == 0
    assert memory[-1] - memory[-2] < 500, memory


# Where else cgroup2 is mounted: for nhmtap alone, below $0. The tests' own mount is $1.
MOUNTS = {
    "a folder with a space": 'mkdir "$0/a b\\\\c"; mount -t cgroup2 none "$0/a b\\\\c"; umount -l "$1"',
    "behind a mount of a part": 'mkdir "$0/whole" "$0/part"; umount -l "$1"; mount -t cgroup2 none "$0/whole"; '
                                'mount --bind "$0/whole$2" "$0/part"; umount -l "$0/whole"; mount -t cgroup2 none "$0/whole"',
    "behind a mount that is covered": 'mkdir "$0/other"; mount -t tmpfs none "$1"; mount -t cgroup2 none "$0/other"',
}


@pytest.mark.parametrize("command", [["stat"], ["profile", "-c", "1", "--by", "pid"]], ids=" ".join)
@pytest.mark.parametrize("where", MOUNTS)
def test_patterns_are_of_the_mount_that_shows_most(nhmtap, tmp_path, cgroup, command, where):
    path, folder = cgroup
    before = ["unshare", "-m", "sh", "-ec", f'mount --make-rprivate /; {MOUNTS[where]}; shift 2; exec "$@"', tmp_path,
              folder.removesuffix(path), path]
    running = Running(nhmtap, tmp_path / "out", *command, "-G", f"{path}/*", before=before)
    subprocess.run(puppet.command(f"cgroups={folder},20,50"), check=True, stdout=subprocess.DEVNULL)
    result = running.end()
    assert total(result) - missed(result) <= 20 * 50 <= total(result) + lost(result)
    assert not [r for r in result.records if "cgroups_late" in r]


@pytest.mark.parametrize("command", [["stat", "--per", "cgroup"], ["stat", "--per", "cpu"],
                                     ["profile", "-c", "1", "--by", "pid"], ["mem", "-c", "1", "--stream"]], ids=" ".join)
def test_a_name_that_begins_with_a_dot_is_a_name(nhmtap, tmp_path, cgroup, command):
    path, folder = cgroup
    hidden = f"{folder}/.child"
    os.mkdir(hidden)
    result = nhmtap.into(tmp_path / "out", command[0], *FAULTS, *command[1:], "-G", f"{path}/*", "--",
                         *inside(shlex.quote(hidden), *puppet.command("faults=300")))
    remove(hidden)
    assert result.status == 0, result.err
    assert total(result) + lost(result) >= 300, result.out


@pytest.mark.parametrize("command", [["stat", "--per", "cpu"], ["mem", "-c", "1", "--stream"]], ids=" ".join)
def test_what_a_pattern_fits_is_measured_before_the_command_runs(nhmtap, tmp_path, cgroup, command):
    """nhmtap is held when it writes its first record, so the command has run before it waits for anything."""
    path, folder = cgroup
    out = tmp_path / "out"
    held = ["strace", "-o", os.devnull, "-P", out, "-e", "trace=write", "-e", "inject=write:delay_enter=500000:when=1"]
    result = nhmtap.into(out, command[0], *FAULTS, *command[1:], "-G", f"{path}*", "--",
                         *inside(shlex.quote(folder), *puppet.command("faults=300")), before=held, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    assert result.status == 0, result.err
    assert total(result) + lost(result) >= 300, result.out
