# SPDX-License-Identifier: GPL-2.0-only
"""The resource of OTLP's numbers is the one that the measured process has published (OTEP 4719)."""
import datetime
import json
import os
import subprocess
import sys
import time

import otlp
import otlp_profiles
import publisher
import pytest
from publisher import Publisher, bare, context
from sessions import until

SHOP = {"service.name": "shop", "service.instance.id": "4f2", "replicas": 3, "canary": True, "load": 0.5}


class Run:
    """A run that writes records and both kinds of OTLP's messages. Use it in a with statement, which ends it."""

    def __init__(self, nhmtap, folder, *options, command=(), before=()):
        self.nhmtap, self.folder = nhmtap, folder
        self.process = nhmtap.start(*options, "-o", folder / "records", "-o", f"otlp-profiles-json={folder / 'profiles'}",
                                    "-o", f"otlp={folder / 'metrics'}", *command, before=before)

    def __enter__(self):
        until(lambda: self.of("start"))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.nhmtap.interrupt(self.process)

    def of(self, kind):
        path = self.folder / "records"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [r for r in (json.loads(line) for line in lines if line.endswith("\n")) if r["type"] == kind]

    def contexts(self, nr):
        """Waits for so many of these records."""
        until(lambda: len(self.of("process_context")) >= nr)
        return self.of("process_context")

    def end(self):
        self.nhmtap.interrupt(self.process)
        return self.resources()

    def resources(self):
        """What the profiles' resources are, with the sums of their samples."""
        sums = {}
        for line in (self.folder / "profiles").read_text().splitlines():
            message = otlp_profiles.read(line)
            for part in message.parts:
                key = part.resource.get("service.name"), part.resource.get("service.instance.id")
                sums[key] = sums.get(key, 0) + sum(s.values[0] for p in part.profiles for s in p.samples
                                                   if message.type(p)[0] == "samples")
        return sums


WHOLE = ["profile", "-e", "page-faults:u", "-c", "1"]
FAULTS = [*WHOLE, "-I", "250"]  # a context that was read is in a file after an interval, or after ten seconds


def test_the_resource_of_a_process_is_what_it_has_published(nhmtap, tmp_path):
    with Publisher() as shop:
        shop.publish(context(SHOP, {"region": "north"}))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", shop.pid) as run:
            record, = run.contexts(1)
            shop.do("touch", 300)
            sums = run.end()
    assert record["attributes"] == {**SHOP, "region": "north"} and record["pid"] == shop.pid and record["target"]
    assert list(sums) == [("shop", "4f2")] and 300 <= sums["shop", "4f2"] < 400
    resource = otlp_profiles.read((tmp_path / "profiles").read_text().splitlines()[-1]).parts[0].resource
    assert SHOP.items() <= resource.items() and "process.executable.name" not in resource
    line = json.loads((tmp_path / "metrics").read_text().splitlines()[-1])
    attributes = {a["key"]: a["value"] for a in line["resourceMetrics"][0]["resource"]["attributes"]}
    assert attributes["service.name"] == {"stringValue": "shop"} and attributes["replicas"] == {"intValue": "3"}
    assert otlp.read(json.dumps(line))


def test_a_command_publishes_after_it_has_begun(nhmtap, tmp_path):
    steps = f"publish OTEL_CTX OTEL_CTX 2 {len(context(SHOP))} {time.time_ns()} 0 {context(SHOP).hex()}\n"
    process = subprocess.Popen(
        nhmtap.command(*WHOLE, "-o", tmp_path / "records", "-o", f"otlp-profiles-json={tmp_path / 'profiles'}", "--",
                       sys.executable, publisher.__file__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(steps)
    process.stdin.flush()
    until(lambda: "process_context" in ((tmp_path / "records").read_text() if (tmp_path / "records").exists() else ""))
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()
    message = otlp_profiles.read((tmp_path / "profiles").read_text())
    assert [part.resource["service.name"] for part in message.parts] == ["shop"]


def test_each_process_has_its_own_resource(nhmtap, tmp_path):
    with Publisher() as shop, Publisher() as bank, Publisher() as silent:
        shop.publish(context(SHOP))
        bank.publish(context({"service.name": "bank", "service.instance.id": "1"}))
        pids = f"{shop.pid},{bank.pid},{silent.pid}"
        with Run(nhmtap, tmp_path, *FAULTS, "--by", "stack,pid", "-p", pids) as run:
            records = run.contexts(2)
            for process, pages in ((shop, 500), (bank, 250), (silent, 125)):
                process.do("touch", pages)
            sums = run.end()
    assert not any("target" in record for record in records)
    own = sums.pop(("shop", "4f2")), sums.pop(("bank", "1"))
    (name, _), rest = sums.popitem()
    assert name == "nhmtap" and not sums
    for found, pages in zip((*own, rest), (500, 250, 125)):
        assert pages <= found < pages + 100


def test_memory_that_does_not_come_keeps_nobody_from_the_contexts_of_others(nhmtap, tmp_path):
    payload = context(SHOP)
    with Publisher() as shop, Publisher() as bank:
        shop.withhold(payload)
        bank.publish(context({"service.name": "bank"}))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", f"{shop.pid},{bank.pid}") as run:
            record, = run.contexts(1)
            assert record["attributes"] == {"service.name": "bank"}
            bank.change(context({"service.name": "trust"}))
            assert run.contexts(2)[1]["attributes"] == {"service.name": "trust"}
            shop.fill(payload)
            assert run.contexts(3)[2]["attributes"] == SHOP
            nhmtap.interrupt(run.process)


def told_of(run, process):
    return [r["attributes"] for r in run.of("process_context") if r["pid"] == process.pid]


def test_a_process_that_ends_while_its_memory_is_waited_for_is_left_alone(nhmtap, tmp_path):
    with Publisher() as bank:
        # With a thread to measure, the contexts of all processes are read.
        with Publisher() as shop, Run(nhmtap, tmp_path, *FAULTS, "-t", bank.pid) as run:
            shop.withhold(context(SHOP))
            bank.publish(context({"service.name": "bank"}))
            until(lambda: told_of(run, bank))
            shop.process.kill()
            bank.change(context({"service.name": "trust"}))
            until(lambda: len(told_of(run, bank)) == 2)
            nhmtap.interrupt(run.process)
            assert not told_of(run, shop)
    assert told_of(run, bank) == [{"service.name": "bank"}, {"service.name": "trust"}]


def test_children_of_a_command_have_their_own_resource_and_never_their_parents(nhmtap, tmp_path):
    """The command's process publishes one context, a child another, and a grandchild none."""
    fifos = {name: tmp_path / name for name in ("shop", "bank", "silent")}
    for fifo in fifos.values():
        os.mkfifo(fifo)
    script = f"run() {{ {sys.executable} {publisher.__file__}; }}; (run < {fifos['silent']} & run < {fifos['bank']}) & " + \
        f"exec {sys.executable} {publisher.__file__} < {fifos['shop']}"
    with Run(nhmtap, tmp_path, *WHOLE, "--by", "symbol,pid", command=["--", "sh", "-c", script]) as run:
        steps = {name: open(fifo, "w", encoding="ascii") for name, fifo in fifos.items()}
        for name, attributes in (("shop", SHOP), ("bank", {"service.name": "bank"})):
            payload = context(attributes)
            steps[name].write(f"publish OTEL_CTX OTEL_CTX 2 {len(payload)} {publisher.boot_ns()} 0 {payload.hex()}\n")
            steps[name].flush()
        records = run.contexts(2)
        for name, pages in (("shop", 1000), ("bank", 2000), ("silent", 4000)):
            steps[name].write(f"touch {pages}\n")
            steps[name].close()
        assert run.process.wait() == 0
        sums = {name: samples for (name, _), samples in run.resources().items()}
    assert {r["attributes"]["service.name"]: r.get("target") for r in records} == {"shop": True, "bank": None}
    # Every sample of a process has its resource: as many as the records have of its pid, among them the interpreter's own.
    pids = {r["attributes"]["service.name"]: r["pid"] for r in records}
    entries = [e for r in run.of("profile") for e in r.get("entries", [])]
    own = {name: sum(e["samples"] for e in entries if e["pid"] == pid) for name, pid in pids.items()}
    assert own == {name: sums.get(name) for name in own} and all(sums.values())
    assert sums["nhmtap"] == sum(e["samples"] for e in entries if e["pid"] not in pids.values())


def test_a_context_that_changes_is_read_again_and_one_that_is_gone_is_forgotten(nhmtap, tmp_path):
    with Publisher() as other, Publisher() as shop:
        shop.publish(context(SHOP))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", f"{shop.pid},{other.pid}") as run:
            run.contexts(1)
            shop.change(context({**SHOP, "replicas": 4}))
            assert run.contexts(2)[1]["attributes"]["replicas"] == 4
            shop.__exit__()
            gone = run.contexts(3)[2]
            assert gone["attributes"] == {} and gone["pid"] == shop.pid and "published_time" not in gone


def test_what_a_process_did_in_the_interval_in_which_it_ended_has_its_resource(nhmtap, tmp_path):
    with Publisher() as other, Publisher() as shop:
        shop.publish(context(SHOP))
        with Run(nhmtap, tmp_path, *FAULTS, "--by", "symbol,pid", "-p", f"{shop.pid},{other.pid}") as run:
            run.contexts(1)
            shop.do("touch", 300)
            shop.__exit__()
            run.contexts(2)
            sums = run.end()
    assert sums["shop", "4f2"] == sum(e["samples"] for r in run.of("profile") for e in r["entries"] if e["pid"] == shop.pid) >= 300


def test_a_clock_that_is_set_back_takes_its_resource_from_nothing(nhmtap, shim, tmp_path):
    at = tmp_path / "step"
    at.write_text("0")
    before = ["env", f"LD_PRELOAD={shim('set_clock')}", f"STEP_FILE={at}", "ASAN_OPTIONS=verify_asan_link_order=0"]
    with Publisher() as other, Publisher() as shop:
        shop.publish(context(SHOP))
        with Run(nhmtap, tmp_path, *FAULTS, "--by", "symbol,pid", "-p", f"{shop.pid},{other.pid}", before=before) as run:
            run.contexts(1)
            shop.do("touch", 300)
            at.write_text(str(-3600 * 10**9))
            shop.__exit__()
            run.contexts(2)
            sums = run.end()
    assert sums["shop", "4f2"] >= 300


def test_the_numbers_of_a_target_that_has_ended_have_its_resource_until_the_interval_is_over(nhmtap, tmp_path):
    with Publisher() as shop:
        shop.publish(context(SHOP))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", shop.pid) as run:
            run.contexts(1)
            shop.do("touch", 300)
            shop.__exit__()
            assert run.process.wait() == 0
            sums = run.resources()
    assert list(sums) == [("shop", "4f2")]
    line = json.loads((tmp_path / "metrics").read_text().splitlines()[-1])
    attributes = {a["key"]: a["value"] for a in line["resourceMetrics"][0]["resource"]["attributes"]}
    assert attributes["service.name"] == {"stringValue": "shop"}


@pytest.mark.parametrize("how", [
    {"version": 1}, {"version": 3}, {"published": 0}, {"signature": "OTEL_CTY"}, {"name": "OTEL_CTX_OLD"},
    {"size": 1 << 31}, {"size": 65537}, {"at": 1}, {"at": (1 << 64) - 1}, {"payload": b"\xff" * 40},
    {"payload": b"\x0a\x7f"},
])
def test_what_is_no_context_is_not_taken_for_one(nhmtap, tmp_path, how):
    with Publisher() as shop, Publisher() as bank:
        shop.publish(**{"payload": context(SHOP), **how})
        bank.publish(context({"service.name": "bank"}))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", f"{shop.pid},{bank.pid}") as run:
            assert [record["pid"] for record in run.contexts(1)] == [bank.pid]  # both were looked at


def test_attributes_of_other_kinds_and_beyond_the_limit_are_left_out(nhmtap, tmp_path):
    many = {f"key{i}": "x" * 100 for i in range(100)}
    with Publisher() as shop:
        shop.publish(context({"list": ["a"], "bytes": b"\x00", "service.name": "shop", **many}))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", shop.pid) as run:
            attributes = run.contexts(1)[0]["attributes"]
    assert attributes.pop("service.name") == "shop" and attributes.items() <= many.items()
    assert 30 < len(attributes) and len(json.dumps(attributes, separators=(",", ":"))) <= 4096


@pytest.mark.parametrize("clock", ["CLOCK_BOOTTIME", "CLOCK_REALTIME"])  # of today's publishers, and of the first ones
def test_a_context_has_the_time_when_it_was_published(nhmtap, tmp_path, clock):
    ago = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 2
    with Publisher() as shop:
        shop.publish(context(SHOP), published=time.clock_gettime_ns(getattr(time, clock)) - ago)
        expected = time.time() - ago / 1e9
        with Run(nhmtap, tmp_path, *FAULTS, "-p", shop.pid) as run:
            told = run.contexts(1)[0]["published_time"]
    assert datetime.datetime.fromisoformat(told[:19] + "+00:00").timestamp() == pytest.approx(expected, abs=120)


def test_a_bare_resource_is_read(nhmtap, tmp_path):
    with Publisher() as shop:
        shop.publish(bare({"service.name": "shop", "host.name": "h"}))
        with Run(nhmtap, tmp_path, *FAULTS, "-p", shop.pid) as run:
            assert run.contexts(1)[0]["attributes"] == {"service.name": "shop", "host.name": "h"}


def test_contexts_are_not_read_for_other_outputs(nhmtap, tmp_path):
    with Publisher() as shop:
        shop.publish(context(SHOP))
        result = nhmtap(*FAULTS, "-p", shop.pid, "--duration", "0.3")
    assert not result.of("process_context")
