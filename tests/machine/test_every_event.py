"""Opens every event of each CPU's table on that CPU, without and with precise sampling. The kernel
accepts what nhmtap plans, and nhmtap refuses in advance, with a reason, what the kernel refuses.
The expected encodings come from perfmon's tables, not from nhmtap."""
import subprocess

import pytest
from facts import perfmon
from guests import SANDYBRIDGES, TABLES, tool

# Fixed counters: the facts have Intel's code for them, 0x00, which perf_event_attr does not use.
FIXED = {"0x00", "0x0", ""}


def facts(table):
    return [row for row in perfmon(table) if row["code"] not in FIXED]


def encoding(row):
    """config and config1 of a row, in the layout of IA32_PERFEVTSELx and OFFCORE_RSP_0 (guide)."""
    # If there are two off-core registers the facts have both codes.
    first = {**row, "code": row["code"].split(",")[0]}
    number = {name: int(first[name] or "0", 0) for name in ("code", "umask", "cmask", "inv", "edge", "any")}
    config = (number["code"] | number["umask"] << 8 | number["edge"] << 18 | number["any"] << 21 |
              number["inv"] << 23 | number["cmask"] << 24)
    return config, int(row["msr_value"] or "0", 0)


def only_reserved(row):
    """An off-core response for which Nehalem has no bit: REMOTE_CACHE_HITM, guide Table 12."""
    return row["code"].upper() == "0XB7" and encoding(row)[1] & 0xff00 == 0x0800


def kernel_takes(guest, rows, precise):
    lines = "".join("%x %x %x\n" % (*encoding(row), precise) for row in rows)
    said = guest.say("openable", stdin=lines.encode(), paranoid=-1)
    answers = [int(line) == 0 for line in said.split()]
    assert len(answers) == len(rows)
    return dict(zip((row["name"] for row in rows), answers))


def nhmtap_takes(table, name, *options):
    done = subprocess.run([tool(), "explain", "--cpu", table, *options, name],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "Next: " in done.stderr
    return done.returncode == 0


def agree(bench, table, precise, reserved):
    rows = facts(table)
    assert len(rows) > 530
    kernel = kernel_takes(bench, rows, precise)
    options, modifier = (["-c", "100003"], ":p") if precise else ([], "")
    for row in rows:
        name = row["name"]
        ours = nhmtap_takes(table, name + modifier, *options)
        if reserved and only_reserved(row):
            # The kernel accepts it without precise sampling, and it would count nothing.
            assert not ours and kernel[name] == (not precise), name
        else:
            assert ours == kernel[name], f"{name}: kernel {kernel[name]}, nhmtap {ours}"


@pytest.fixture(params=SANDYBRIDGES)
def each_sandybridge(request, machines):
    bench = machines(**SANDYBRIDGES[request.param])
    bench.model = request.param
    return bench


PRECISE = pytest.mark.parametrize("precise", [0, 1], ids=["plainly", "precisely"])


@PRECISE
def test_the_kernel_takes_an_event_exactly_where_nhmtap_plans_it(guest, precise):
    agree(guest, "nehalem-ep", precise, reserved=True)


@PRECISE
def test_the_same_on_each_westmere(westmere, precise):
    agree(westmere, TABLES[westmere.model], precise, reserved=False)


@PRECISE
def test_sandy_bridge_is_asked_for_what_the_cpu_can_record(each_sandybridge, precise):
    rows = facts(each_sandybridge.model)
    assert len(rows) > 340
    kernel = kernel_takes(each_sandybridge, rows, precise)
    options, modifier = (["-c", "100003"], ":p") if precise else ([], "")
    for row in rows:
        # The driver accepts any event as precise; one that PEBS cannot record would give no
        # samples. The driver lists some events by code, and perfmon does not mark all of these for
        # the two-socket model.
        recorded = row["pebs"] != "0" or row["code"].upper() in ("0XD0", "0XD1", "0XD2", "0XD3")
        wanted = kernel[row["name"]] and (not precise or recorded)
        ours = nhmtap_takes(each_sandybridge.model, row["name"] + modifier, *options)
        assert ours == wanted, f"{row['name']}: kernel {kernel[row['name']]}, nhmtap {ours}"
