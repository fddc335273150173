# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem on programs whose loads are known: their addresses, data sources and latencies."""
import collections

import pytest

import firefox
import known
import otlp
import pages
import records
import test_data_sources
from guests import KERNELS, nhmtap

N = known.numbers("chase")
RING = known.addresses("chase")["ring"]
SITE = known.addresses("chase")["chase_site"]


def mem(bench, *arguments, status=0, **options):
    """The records of a run at user level."""
    return nhmtap(bench, "mem", *arguments, status=status, **options)


def loads(bench, command, *arguments, **options):
    """The first mem record and the entries of all of them, with all loads tagged."""
    found = mem(bench, "--side", "u", *arguments, "--", *command.split(), tag_all_loads=True, **options)
    whole = [r for r in found if r["type"] == "mem"]
    return whole[0], [entry for record in whole for entry in record["entries"]]


def tally(entries, key):
    found = collections.Counter()
    for entry in entries:
        found[entry[key]] += entry["samples"]
    return found


def closes(record, period, n):
    """Checks that no sample is lost, and that the samples stand for n loads, all of which were counted. The loads
    outside of the chain may be faster than the threshold."""
    samples, counted = record["samples"], record["value"]
    # If the program is switched between an overflow and its record, the kernel writes the counter anew, but PEBS stays armed:
    # the record comes with the next load, and the kernel adds a whole period for it (intel_pmu_save_and_restart_reload()).
    # It is one event less than the distance of the records.
    if counted > n:
        counted -= period - 1
    assert 0 <= n - counted <= N["other_loads"]
    assert record["status"] == "counted"
    assert sum(samples["lost"].values()) == samples["throttled"] == 0
    assert 0 <= counted - samples["aggregated"] * period < period


def test_samples_lie_at_the_load_its_addresses_and_its_source(any_kernel):
    record, entries = loads(any_kernel, "chase memory", "-c", "100", "--by", "ip,cacheline")
    closes(record, 100, N["memory.loads"] + N["other_loads"])
    total = record["samples"]["aggregated"]
    lines = {hex(RING + 64 * k) for k in range(N["memory.lines"])}
    right = [e for e in entries if e["ip"] == hex(SITE) and e["cacheline"] in lines
             and e["source"] == "local_dram_exclusive"]
    assert sum(e["samples"] for e in right) >= 0.99 * total
    # 190 cycles, and on a TLB miss 7, or those of a walk: 14, or 38 if the page-table entry is in
    # the LLC.
    assert all(set(e["latency_histogram"]) == {"128"} for e in right)
    assert all(190 <= e["latency_max"] <= 190 + 38 for e in right)
    assert sum(e["latency_sum"] for e in right) >= 190 * sum(e["samples"] for e in right)


COMPANION = """
    cp -r /sys/bus/event_source/devices/cpu/events /run/events
    echo event=0x3,umask=0x82 > /run/events/mem-loads-aux
    mount --bind /run/events /sys/bus/event_source/devices/cpu/events
"""


def test_loads_are_sampled_beside_a_companion_that_counts(any_kernel):
    """As on Sapphire Rapids, where the driver accepts the loads event only in a group behind
    mem-loads-aux. Here it accepts the event either way; the events and their group are the same."""
    any_kernel.say(f"{COMPANION} nhmtap mem --side u -c 100 --by ip --format json -o /run/found -- chase memory",
                   paranoid=-1, tag_all_loads=True)
    found = records.parse(any_kernel.say("cat /run/found"))
    records.check_stream(found)
    aux, sampled = found[0]["events"]
    assert aux["attr"]["config"] == "0x8203" and "sample_period" not in aux["attr"]
    assert aux["group"] == sampled["group"] and sampled["name"] == "load-latency"
    record, = [r for r in found if r["type"] == "mem"]
    closes(record, 100, N["memory.loads"] + N["other_loads"])
    entries = [e for e in record["entries"] if e["ip"] == hex(SITE)]
    assert sum(e["samples"] for e in entries) >= 0.98 * record["samples"]["aggregated"]


@pytest.mark.parametrize("kind, source, bucket, least", [
    ("l1", "l1_hit", "4", 4), ("l2", "l2_hit", "8", 10), ("llc", "l3_hit", "32", 38),
    ("memory", "local_dram_exclusive", "128", 190),
])
def test_a_chain_is_found_where_it_fits(guest, kind, source, bucket, least):
    # Between two samples there are more loads than the chains of L1 and L2 have lines, so the lines
    # that a sample's interrupt evicted are back at the next sample.
    record, _ = loads(guest, f"chase {kind}", "-c", "1000", "--ldlat", "3")
    closes(record, 1000, N[kind + ".loads"] + N["other_loads"])
    first = record["sources"][0]
    assert first["source"] == source
    assert first["samples"] >= 0.98 * record["samples"]["aggregated"]
    assert first["latency_histogram"][bucket] >= 0.98 * first["samples"]
    assert first["latency_sum"] >= least * first["samples"]


def test_pages_and_otlp_have_the_latencies_as_histograms_by_source(guest):
    guest.say("nhmtap mem --side u -c 1000 --ldlat 3 --format json -o /run/found -o openmetrics=/run/page"
              " -o otlp=/run/otlp -- chase l2", paranoid=-1, tag_all_loads=True)
    record, = [r for r in records.parse(guest.say("cat /run/found")) if r["type"] == "mem"]
    page, lines = guest.say("cat /run/page"), guest.say("cat /run/otlp").splitlines()
    assert pages.families(page)["nhmtap_latency_cycles"].type == "histogram"
    told = {labels["source"]: point for line in lines for labels, point in otlp.points(otlp.read(line), "nhmtap.latency")}
    assert set(told) == {source["source"] for source in record["sources"]}
    for source in record["sources"]:
        name, buckets = source["source"], source["latency_histogram_period"]
        for least in (4, 8, 16, 1024):
            assert pages.total(page, "nhmtap_latency_cycles_bucket", source=name, le=f"{least - 1}.0") == sum(
                number for bucket, number in buckets.items() if int(bucket) < least)
        for kind, number in (("count", sum(buckets.values())), ("sum", source["latency_sum_period"])):
            assert pages.total(page, f"nhmtap_latency_cycles_{kind}", source=name) == number
            assert getattr(told[name], kind) == number


def test_a_pending_hit_is_told_from_the_miss_before_it(guest):
    _, entries = loads(guest, "known f", "-c", "100", "--ldlat", "30", "--by", "ip")
    site = hex(known.addresses("known")["lfb_site"])
    found = {e["source"] for e in entries if e["ip"] == site}
    assert found == {"fill_buffer_hit"}


def test_uncacheable_loads(guest):
    record, entries = loads(guest, "uncached", "-c", "100", "--by", "ip")
    site = hex(known.addresses("uncached")["uncached_site"])
    assert {e["source"] for e in entries if e["ip"] == site} == {"uncacheable"}


def test_a_line_that_two_cores_write_in_turn_is_shown_with_who_loads_it(two_cores):
    found = mem(two_cores, "--side", "u", "--ldlat", "20", "-c", "32", "--shared", "--", "bounce", 0, 1)
    line, = [r for r in found if r["type"] == "shared_line"
             and r["cacheline"] == hex(known.addresses("bounce")["line"])]
    assert line["modified"] >= 0.3 * line["loads"] > 0
    # Both threads load the same word: true sharing.
    assert (line["threads"], line["cpus"], line["offsets"], line["offsets_in_common"]) == (2, 2, 1, 1)
    modified = [e for e in line["entries"] if e["source"] == "l3_hit_other_core_modified"]
    assert {e["cpu"] for e in modified} == {0, 1}
    # Each access is to `turn`, the first member of the variable.
    assert {(e["variable"], e["variable_offset"]) for e in line["entries"]} == {("line", 0)}
    assert {e.get("field") for e in line["entries"]} <= {"turn", None}  # None: built without -g
    start = known.addresses("bounce")["play"]
    assert all(start <= int(e["ip"], 16) < start + 512 for e in modified)


def test_words_that_share_a_line_are_shown_with_who_loads_which(two_cores):
    # Every nth of all loads would be in step with the threads' turns; the loads that the hardware
    # tags, one in 16, are not.
    found = mem(two_cores, "--side", "u", "--ldlat", "20", "-c", "32", "--by", "cacheline", "--shared",
                "--", "apart", 0, 1)
    at, numbers = known.addresses("apart"), known.numbers("apart")
    line, = [r for r in found if r["type"] == "shared_line" and r["cacheline"] == hex(at["words"])]
    # False sharing: the threads have no offset in common.
    assert (line["threads"], line["cpus"], line["offsets"], line["offsets_in_common"]) == (2, 2, 2, 0)
    # A sample says where the load ended. The kernel finds the load's own address by the last branch;
    # if that is an interrupt's, it keeps the other (intel_pmu_pebs_fixup_ip(), ds.c).
    most = {}
    for e in sorted(line["entries"], key=lambda e: e["samples"]):
        most[e["cpu"], e["offset"]] = e["ip"]
    assert most == {(0, numbers["left_offset"]): hex(at["left_load"]), (1, numbers["right_offset"]): hex(at["right_load"])}
    assert {e["code"]["symbol"] for e in line["entries"]} == {"play"}  # both loads are in its text
    assert len({e["tid"] for e in line["entries"]}) == 2
    assert line["modified"] >= line["loads"] - 1 > numbers["loads"] / 16 / 33 / 3


def test_the_maximum_of_an_interval_is_of_its_own_loads(guest):
    # When the shell starts, the TLB lacks its pages, so some loads take longer than 4 cycles. The
    # chain that fits the L1 needs few pages.
    loop = "i=0; while [ $i -lt 160 ]; do i=$((i+1)); done; exec chase l1"
    found = mem(guest, "--side", "u", "-c", "32", "--ldlat", "3", "-I", "5", "--", "sh", "-c", loop,
                tag_all_loads=True)
    sums = [source for r in found if r["type"] == "mem" for source in r.get("sources", ())]
    tops = collections.defaultdict(set)
    for source in sums + [e for r in found if r["type"] == "mem" for e in r["entries"]]:
        top = max(map(int, source["latency_histogram"]))
        assert top <= source["latency_max"] < 2 * top
        tops[source["source"]].add(top)
    assert tops["l1_hit"] > {4}


def test_codes_that_the_kernel_folds_are_said_to_be_folded(two_cores):
    found = mem(two_cores, "--side", "u", "--ldlat", "20", "-c", "32", "--", "bounce", 0, 1)
    record, = [r for r in found if r["type"] == "mem"]
    source, = [s for s in record["sources"] if s["source"] == "l3_hit_other_core_modified"]
    assert (source["codes"], source["folded"]) == (["0x6", "0x7"], ["reserved_7"])


@pytest.mark.parametrize("cpu, source, node", [(0, "remote_dram_exclusive", {"remote", 1}),
                                               (1, "local_dram_exclusive", {0, 1})])
def test_memory_is_local_to_the_package_it_belongs_to(two_packages, cpu, source, node):
    # All memory belongs to package 1.
    _, entries = loads(two_packages, f"taskset -c {cpu} chase memory", "-c", "100", "--by", "ip,node",
                       remote_from=0)
    entry, = [e for e in entries if e["ip"] == hex(SITE)]
    assert entry["source"] == source
    assert entry["node"] in node


def test_the_same_as_perf(any_kernel, tmp_path):
    theirs = test_data_sources.latency_samples(any_kernel, "chase llc", "chase_site", tmp_path)
    found = mem(any_kernel, "--side", "u", "--ldlat", "3", "-c", "40", "--by", "ip", "--", "chase", "llc")
    ours = [e for r in found if r["type"] == "mem" for e in r["entries"] if e["ip"] == hex(SITE)]
    sources = {s["source"]: int(s["data_src"], 16) for r in found if r["type"] == "mem"
               for s in r["sources"]}
    counted = collections.Counter()
    for e in ours:
        counted[sources[e["source"]] >> 5 & 0x7FFFF] += e["samples"]
    expected = collections.Counter(source for _, _, source in theirs)
    # Soon after a timer tick or a task switch a load may find its line in another level, and miss
    # the TLB; which loads these are differs by run.
    assert sum(abs(counted[source] - expected[source]) for source in {*counted, *expected}) <= 0.1 * len(theirs)
    llc = test_data_sources.mem_op(0x4)
    usual = {test_data_sources.LATENCY["llc"] + tlb for tlb in test_data_sources.TLB}
    assert {e["latency_max"] for e in ours if sources[e["source"]] >> 5 & 0x7FFFF == llc} <= usual
    assert {weight for _, weight, source in theirs if source == llc} <= usual


def test_a_stream_gives_the_addresses_in_order(guest):
    found = mem(guest, "--side", "u", "-c", "100", "--stream", "--", "chase", "memory",
                tag_all_loads=True)
    samples = [r for r in found if r["type"] == "sample" and r["ip"] == hex(SITE)]
    assert [r["sample_time"] for r in samples] == sorted(r["sample_time"] for r in samples)
    # A link leads 175 lines ahead; a sample is 100 links after the previous one.
    links = [(int(r["address"], 16) - RING) // 64 for r in samples]
    steps = collections.Counter((b - a) % N["memory.lines"] for a, b in zip(links, links[1:]))
    assert steps[100 * 175 % N["memory.lines"]] >= 0.98 * (len(links) - 1)
    assert len(links) >= N["memory.loads"] // 100 - 1
    assert found[-1]["stream"] == {"samples": found[-1]["samples"]["aggregated"], "ring_lost": 0}


def test_one_record_of_two_precise_events_is_counted_as_lost(guest):
    # Both count exactly the loads that memory serves, so their periods end at the same loads.
    events = "cpu/event=0xb,umask=0x10,ldlat=100/upp,r10cb:upp"
    found = mem(guest, "-e", events, "-c", "100", "--", "chase", "memory", tag_all_loads=True)
    lost = sum(r["samples"]["lost"]["pebs_collision"] for r in found if r["type"] == "mem")
    assert lost > N["memory.loads"] // 101


def test_throttling_is_counted(guest):
    kernel = "/proc/sys/kernel/perf_"
    before = guest.say(f"cat {kernel}event_max_sample_rate").strip()
    # The rate can be set only while perf_cpu_time_max_percent is not 0, as it is here.
    guest.say(f"echo 25 > {kernel}cpu_time_max_percent; echo 1000 > {kernel}event_max_sample_rate")
    try:
        record, _ = loads(guest, "known d", "-c", "100")
    finally:
        guest.say(f"echo {before} > {kernel}event_max_sample_rate; echo 0 > {kernel}cpu_time_max_percent")
    assert record["samples"]["throttled"] >= 1
    assert record["samples"]["aggregated"] < 20000 // 101


def test_a_threshold_that_the_sibling_holds_is_said_to_be_taken(siblings):
    said = siblings.say(
        "nhmtap stat -e cpu/event=0xb,umask=0x10,ldlat=100/ -C 0 > /dev/null & sleep 0.3;"
        "nhmtap mem -C 1 -c 1000 --duration 0.2; kill $!; wait", paranoid=-1)
    record, = [r for r in records.parse(said) if r["type"] == "mem"]
    assert (record["status"], record["running_ns"]) == ("not_counted", 0)
    assert record["enabled_ns"] > 0
    assert "the core's load-latency threshold with another value (on the core's other thread too)" in record["why"]


PAGEMAP = """
yes > /dev/null & sleep 0.1
nhmtap mem --format json -p $! --side u --ldlat 3 -c 500 --by page,phys_page --duration 0.05 -o x
for page in $(grep -o '"page":"0x[0-9a-f]*"' x | cut -d'"' -f4 | sort -u); do
    echo $page $(dd if=/proc/$!/pagemap bs=8 skip=$((page / 4096)) count=1 2> /dev/null | hexdump -e '2/4 "%08x "')
done
echo; cat x
"""


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "6.1"])
def test_physical_pages_are_those_of_the_processs_page_map(machines, kernel):
    said = machines(kernel=kernel).say(PAGEMAP, paranoid=-1, tag_all_loads=True)
    maps, text = said.split("\n\n", 1)
    # Documentation/admin-guide/mm/pagemap.rst: bits 0-54 of an entry are the page's number.
    pages = {page: (int(high + low, 16) & (1 << 55) - 1) << 12
             for page, low, high in (line.split() for line in maps.splitlines())}
    entries = [e for r in records.parse(text) if r["type"] == "mem" for e in r["entries"]]
    assert len(pages) >= 2 and sum(e["samples"] for e in entries) > 50
    assert {(e["page"], int(e["phys_page"], 16)) for e in entries} == set(pages.items())


@pytest.mark.parametrize("kernel, why, remedy", [
    ("6.1", "before Linux 6.3", "--by page"),
    ("6.12", "physical addresses need 1 or less", "kernel.perf_event_paranoid=1")])
def test_physical_pages_are_refused_where_they_can_not_be_had(machines, kernel, why, remedy):
    result = machines(kernel=kernel).run("nhmtap mem --format json --side u --by phys_page -- true",
                                         user="user", paranoid=2)
    assert result.status == 2
    error = records.parse(result.stdout)[0]
    assert why in error["why"] and remedy in error["remedy"]


def test_without_rights_the_missing_ones_are_named(guest):
    result = guest.run("nhmtap", "mem", "--side", "k", "--", "true", user="user", paranoid=2)
    assert result.status == 2
    found = records.parse(result.stdout)
    records.check_stream(found)
    assert found[0]["errno"] == "EACCES"
    assert "the kernel's side needs 1 or less" in found[0]["why"]


def test_firefox_has_the_latencies_of_each_source_as_markers_and_of_single_loads_at_their_times(guest, tmp_path):
    """The loads of memory take 190 cycles and at most a page walk, as above."""
    guest.say("nhmtap mem -g -c 100 -o json=j -o firefox=f -- chase memory && "
              "nhmtap stream -e cpu/mem-loads,ldlat=100/pp -c 500 --fields stack,pid,tid,comm,latency,source,period -o json=k -o firefox=g -- chase memory",
              paranoid=-1)
    document, single = (firefox.read(guest.fetch(name, tmp_path)) for name in "fg")
    found, samples = (records.parse(open(guest.fetch(name, tmp_path), encoding="utf-8").read()) for name in "jk")
    expected = {source["source"]: source for r in found if r["type"] == "mem" for source in r.get("sources", []) if source["latency_max"]}
    markers = {source: fields for source, *_, fields in firefox.loads(document)}
    assert {source: (fields["samples"], fields["loads"], fields["max"]) for source, fields in markers.items()} == {
        source: (one["samples"], one["period"], one["latency_max"]) for source, one in expected.items()}
    assert 190 <= markers["local_dram_exclusive"]["mean"] <= 190 + 38
    assert firefox.counts(document) == {"load-latency": sum(r.get("value", 0) for r in found if r["type"] == "mem")}
    loads = sorted((source, fields["mean"]) for source, _, end, fields in firefox.loads(single) if end is None)
    assert loads and loads == sorted((r["source"], r["latency"]) for r in samples if r["type"] == "sample")
