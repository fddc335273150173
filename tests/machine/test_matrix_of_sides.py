# SPDX-License-Identifier: GPL-2.0-only
"""Every software event, and tracepoints of each kind, on every side, of a command and of whole CPUs, by every caller, at every
level of perf_event_paranoid (3 and 4 are Debian's), in every way to count them, on both kernels: a count is right by the
program's text, or there is none and it says why. No expectation of a count that can't be is met. Other PMUs: test_sides_on_nehalem.py."""
import json

import known
import nehalem
import pytest
from guests import LITTLE_KALLSYMS, Bench, programs, tool
from records import check_stream, parse
from test_python_on_nehalem import python

pytestmark = pytest.mark.xdist_group("matrix-of-sides")  # they share a guest

SIDES = known.numbers("sides")
LEAST = {  # by the program's text, on the user's side and on the kernel's
    "context-switches": (0, SIDES["naps"]),
    "cpu-migrations": (0, SIDES["moves"] - 1),
    "page-faults": (SIDES["faults"], SIDES["faults"]),
    "minor-faults": (SIDES["faults"], SIDES["faults"]),
    "major-faults": (0, 0),
    "cgroup-switches": (0, 0),
}
NEVER = ("alignment-faults", "emulation-faults", "dummy", "bpf-output")
SCHEDULER = ("context-switches", "cpu-migrations", "cgroup-switches")
CLOCKS = ("task-clock", "cpu-clock")
TRACEPOINTS = {  # times that the program passes them, at least; whether they are on the user's side
    "syscalls/sys_enter_clock_nanosleep": (SIDES["naps"], True),
    "raw_syscalls/sys_enter": (SIDES["naps"] + SIDES["faults"] + SIDES["moves"], False),
    "sched/sched_switch": (SIDES["naps"], False),
}
STARTING = 120  # what the loader and the C library add at most
CAPABLE = "cap_perfmon,cap_bpf+ep"
SETPRIV = "/opt/setpriv --reuid=65534 --regid=65534 --clear-groups"
# What stands before nhmtap. "lent": a copy of the program with file capabilities.
CALLERS = {"root": "nhmtap", "perfmon": f"{SETPRIV} --inh-caps=+perfmon,+bpf --ambient-caps=+perfmon,+bpf nhmtap",
           "lent": f"{SETPRIV} /run/lent/nhmtap", "nobody": f"{SETPRIV} nhmtap"}
# The levels of perf_event_paranoid at which a caller may do something else than at the one before, each on one of the kernels
# at least. Root may do the same at each: the first and the last.
LEVELS = {"6.1": {"root": (0,), "perfmon": (2,), "lent": (4,), "nobody": (0, 2, 3)},
          "6.12": {"root": (4,), "perfmon": (2, 3), "lent": (2,), "nobody": (1, 4)}}
CELLS = pytest.mark.parametrize("bench, caller, level", [(kernel, caller, level) for kernel, callers in LEVELS.items()
                                                         for caller, levels in callers.items() for level in levels],
                                indirect=["bench"], scope="module")  # else each test would boot its own
ASKED = ("", "u", "k", "h")

# For each list of events on stdin: what a run of the command, and a block of this process, have of each.
PYTHON = """
import json, sys
sys.path.insert(0, "/opt/python")
import nhmtap

def told(counts, names):
    found = {}
    for name in names:
        try:
            met = bool(counts[name] < 1e15)
        except nhmtap.CannotTell:
            met = None
        found[name] = [counts[name].value, counts[name].record.get("why"), met]
    return found

def block(names):
    with nhmtap.measure(*names) as counted:
        bytearray(1 << 20)
    return told(counted, names)

for names in json.load(sys.stdin):
    for way in (lambda: told(nhmtap.stat(["sides"], names, options=["--force"]), names), lambda: block(names)):
        try:
            print(json.dumps(way()))
        except nhmtap.Refused as error:
            print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def bench(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "asked.py").write_text(PYTHON)
    add = (*programs(), tool(), tool() + "-known", "/usr/bin/setpriv", "/sbin/setcap", f"{folder}/asked.py", *python(folder / "python"))
    with nehalem.Guest(nehalem.Machine(add=add, rounded=True, cores=2, kernel=request.param)) as machine:
        made = Bench(machine)
        made.run(LITTLE_KALLSYMS)
        made.say(f"mkdir -m 755 /run/lent; cp /opt/nhmtap /opt/nhmtap-known /run/lent; setcap {CAPABLE} /run/lent/nhmtap; "
                 "insmod /lib/modules/msr.ko")
        yield made


@pytest.fixture(scope="module")
def events(bench):
    """{event as it is spelt: its name, or that of its tracepoint}"""
    numbers = {path: int(bench.say(f"cat /sys/kernel/tracing/events/{path}/id")) for path in TRACEPOINTS}
    return {**{name: name for name in (*LEAST, *NEVER, *CLOCKS)},
            **{f"tracepoint/config={number}/": path for path, number in numbers.items()}}


def spelt(event, side):
    return event + side if event.endswith("/") or not side else f"{event}:{side}"


def allowed(caller, level, wide):
    """The sides that the kernel lets a caller count: perf_event_open(), and Debian's patch of it."""
    if caller == "root":
        return "uk"
    if level >= 3:
        return ""
    if caller != "nobody":
        return "uk"
    return "uk" if level == 0 or (level == 1 and not wide) else "" if wide else "u"


def limits(name, sides, caller, wide):
    """(least, most) of a count that can be right; None: there is none."""
    more = float("inf") if wide else STARTING
    if name in TRACEPOINTS:
        least, of_user = TRACEPOINTS[name]
        # Whether they are of system calls is in a folder that root alone may read.
        return (least, least + more) if "k" in sides or (of_user and sides and caller == "root") else None
    if not sides or name in NEVER or (name in SCHEDULER and "k" not in sides):
        return None
    if name in CLOCKS:
        return 1, float("inf")
    least = sum(LEAST[name]["uk".index(side)] for side in sides)
    return least, least + more


def wrong_counts(found, names, sides, caller, wide):
    """found: {event: (value, why)}; the value is None if nothing was counted."""
    assert found.keys() == names.keys()
    for event, (value, why) in found.items():
        fits = limits(names[event], sides, caller, wide)
        if fits is None and (value is not None or not why):
            yield f"{event}: {value} is believed"
        elif fits and (value is None or not fits[0] <= value <= fits[1]):
            yield f"{event}: {value} is not in {fits} ({why})"


def told(result, kind, names):
    """{event as it was asked for: (value, why)}. The name of one whose kernel's side was left out ends in u."""
    records = parse(result.stdout)
    check_stream(records)
    asked = {name + ("u" if name.endswith("/") else ":u"): name for name in names} | {name: name for name in names}
    return {asked[r["event"]]: (r["value"] if r["status"] == "counted" else None, r.get("why")) for r in records if r["type"] == kind}


def by_stat(bench, program, names, scope):
    """Beside the counts, expectations that each of them has to meet that is counted."""
    expectations = " ".join(f"--expect '{event}<1e15'" for event in names)
    result = bench.run(f"{program} stat {scope} --force --format json -e {','.join(names)} {expectations} -- sides")
    counts = told(result, "count", names)
    outcomes = {r["expectation"].partition("<")[0]: r["outcome"] for r in parse(result.stdout) if r["type"] == "expectation"}
    wrong = [f"{event}: {outcomes.get(event)}" for event, (value, _) in counts.items()
             if outcomes.get(event) != ("cannot_tell" if value is None else "met")]
    return result, counts, wrong


def by_profile(bench, program, names, scope):
    result = bench.run(f"{program} profile {scope} --force --format json --by comm -c 1 -e {','.join(names)} -- sides")
    return result, told(result, "profile", names), ()


def by_session(bench, program, names, scope):
    activity = {"name": "a", "command": "stat", "event": ",".join(names), "force": True, **({"all_cpus": True} if scope else {})}
    result = bench.run(f"echo '{json.dumps({'activities': [activity]})}' > /run/config; {program} run /run/config -- sides")
    return result, told(result, "count", names), ()


WAYS = {"stat": by_stat, "profile": by_profile, "run": by_session}
OF_CPUS = ("stat",)
SAMPLED = {*LEAST, *NEVER}  # a clock's samples are of time; profile says so of tracepoints itself


def wrong_cells(bench, caller, level, wide, side, events):
    """What is wrong in each way to count these events."""
    may = allowed(caller, level, wide)
    sides = {"": may, "h": ""}.get(side, side)
    for way in OF_CPUS if wide else WAYS:
        names = {spelt(event, side): name for event, name in events.items() if way != "profile" or name in SAMPLED}
        result, found, wrong = WAYS[way](bench, CALLERS[caller], names, "-a" if wide else "")
        refused = not may or not set(sides) <= set(may) or (way == "profile" and caller == "nobody")
        cell = f"{way} {'-a ' if wide else ''}:{side}"
        if refused:
            if result.status != 2 or found or "Next: " not in result.stderr:
                yield f"{cell}: {result.status} {found} {result.stderr}"
            continue
        cannot_tell = way == "stat" and any(value is None for value, _ in found.values())
        if result.status != (3 if cannot_tell else 0):
            yield f"{cell}: {result.status} {result.stderr}"
        yield from (f"{cell}: {line}" for line in (*wrong, *wrong_counts(found, names, sides, caller, wide)))


@CELLS
def test_no_count_is_believed_that_can_not_be_right(bench, events, caller, level):
    bench.run("true", paranoid=level)
    wrong = [line for wide in (False, True) for side in ASKED for line in wrong_cells(bench, caller, level, wide, side, events)]
    assert not wrong, "\n".join(wrong)


@CELLS
def test_the_python_package_has_no_value_that_can_not_be_right(bench, events, caller, level):
    lists = [[spelt(event, side) for event in events] for side in ASKED]
    program = CALLERS[caller].split()
    result = bench.run(f"PYTHONDONTWRITEBYTECODE=1 NHMTAP={'/run/lent/nhmtap' if caller == 'lent' else '/opt/nhmtap'} "
                       f"{' '.join(program[:-1])} python3 -S /opt/asked.py", stdin=json.dumps(lists).encode(), paranoid=level)
    assert result.status == 0, str(result)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == 2 * len(lists), str(result)
    wrong = []
    for side, run, block in zip(ASKED, lines[::2], lines[1::2]):
        may = allowed(caller, level, False)
        sides = {"": may, "h": ""}.get(side, side)
        names = {spelt(event, side): name for event, name in events.items()}
        if not may or not set(sides) <= set(may):
            wrong += [f":{side}: {told}" for told in (run, block) if not isinstance(told, str)]
            continue
        if isinstance(run, str):
            wrong.append(f":{side}: {run}")
            continue
        wrong += [f":{side}: {line}" for line in wrong_counts({e: (v, w) for e, (v, w, _) in run.items()}, names, sides, caller, False)]
        wrong += [f":{side}: {event}: {value} {met}" for event, (value, _, met) in run.items() if met != (None if value is None else True)]
        if isinstance(block, str):  # without --force
            wrong += [] if "would count nothing" in block else [f"block :{side}: {block}"]
            continue
        wrong += [f"block :{side}: {event}: {value} is believed" for event, (value, _, _) in block.items()
                  if value is not None and limits(names[event], sides, caller, False) is None]
    assert not wrong, "\n".join(wrong)
