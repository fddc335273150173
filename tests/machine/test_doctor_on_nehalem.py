"""nhmtap doctor on the emulated Nehalem: each facility works where it should, and says why it does
not if something that it needs is missing."""
import pytest

from records import check_stream, parse

OF_THE_CORE = ["stat", "fixed", "rdpmc", "kernel", "system", "anythread", "sample", "profile",
               "precise", "mem", "offcore", "branch", "bts", "msr", "cgroup", "bpf", "smm_freeze"]


class Findings:
    def __init__(self, result):
        assert result.status in (0, 2), str(result)
        self.status = result.status
        self.records = parse(result.stdout)
        check_stream(self.records)

    def of(self, kind, name=None):
        found = [r for r in self.records if r["type"] == kind and r.get("name") == name]
        assert len(found) == 1
        return found[0]

    def works(self):
        return {r["name"] for r in self.records if r["type"] == "facility" and r["works"]}

    def in_the_way(self):
        return {r["name"] for r in self.records if r["type"] == "permission" and not r["ok"]}


def doctor(bench, *arguments, before="", **options):
    """What doctor finds while `before` runs; `before` ends with the command."""
    return Findings(bench.run(f"{before} nhmtap doctor --format json {' '.join(arguments)}", **options))


def refused(bench, name, **options):
    """The record of a facility that does not work, with the reason and the remedy."""
    findings = doctor(bench, "--need", name, **options)
    assert findings.status == 2
    return findings.of("facility", name)


# --- with everything allowed ------------------------------------------------------------------------


def test_every_facility_of_the_core_works_for_root(any_kernel):
    findings = doctor(any_kernel, "--need", ",".join(OF_THE_CORE))
    assert findings.works() == set(OF_THE_CORE)
    assert findings.status == 0
    assert findings.in_the_way() == set()


def test_samples_of_each_sampled_facility_reach_the_program(guest):
    findings = doctor(guest, "--need", "sample,precise,mem,branch")
    for name, period in ("sample", 100000), ("precise", 100000), ("mem", 50), ("branch", 10000):
        facility = findings.of("facility", name)
        assert 0.9 < facility["samples_arrived"] / (facility["value"] // period) <= 1.1, name


def test_the_processor_is_told_field_by_field(guest):
    processor = doctor(guest, "--need", "stat").of("processor")
    assert processor["signature"]["eax"] == "0x106a5"
    assert processor["perfmon"]["general_counters"] == 4
    assert processor["perfmon"]["fixed_counters"] == 3
    capabilities, misc = processor["registers"]
    assert (capabilities["fields"]["pebs_format"], misc["fields"]["perfmon_available"]) == (1, 1)
    assert (misc["fields"]["bts_unavailable"], misc["fields"]["pebs_unavailable"]) == (0, 0)


def test_registers_are_roots(guest):
    processor = doctor(guest, "--need", "stat", user="user", paranoid=2).of("processor")
    assert [r["errno"] for r in processor["registers"]] == ["EACCES", "EACCES"]


@pytest.mark.modules("intel-uncore")
def test_the_uncore_works_once_its_module_is_there(guest):
    assert doctor(guest, "--need", "uncore").works() == {"uncore"}


# --- permissions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("level, works", [
    (2, {"stat", "fixed", "rdpmc", "offcore"}),
    (1, {"stat", "fixed", "rdpmc", "offcore", "kernel", "bts", "msr"}),
    (0, {"stat", "fixed", "rdpmc", "offcore", "kernel", "bts", "msr", "system", "anythread",
         "cgroup"}),
    (3, set())])
def test_a_user_may_what_the_level_allows_and_no_samples(guest, level, works):
    names = ",".join(OF_THE_CORE[:-1])
    findings = doctor(guest, "--need", names, user="user", paranoid=level)
    assert findings.works() == works
    assert {"CAP_PERFMON", "CAP_BPF"} <= findings.in_the_way()
    assert ("perf_event_paranoid" in findings.in_the_way()) == (level > 0)
    assert ("CAP_SYS_ADMIN" in findings.in_the_way()) == (level > 2)


def test_what_lacks_only_bpf_has_been_opened(guest):
    mem = refused(guest, "mem", user="user", paranoid=2)
    assert mem["opened"] and "CAP_BPF and CAP_PERFMON" in mem["why"]
    assert refused(guest, "bts", user="user", paranoid=2)["remedy"].startswith(
        "sysctl kernel.perf_event_paranoid=1")


# --- counters held by others ------------------------------------------------------------------------


def free(findings):
    counters = findings.of("counters")
    return counters["general_free"], counters["fixed_free"]


def test_all_counters_are_free_on_an_idle_machine(guest):
    assert free(doctor(guest, "--need", "stat")) == (4, 3)


def test_pinned_counters_are_not_free(guest):
    pinned = "perf stat -a -e r01c2:D,r01c4:D sleep 100 2> /dev/null & sleep 1;"
    findings = doctor(guest, "--need", "stat", before=pinned)
    assert free(findings)[0] == 2
    assert "never ran" in findings.of("counters")["why"]


def test_bts_is_refused_under_page_table_isolation(isolated):
    bts = refused(isolated, "bts")
    assert "page-table isolation" in bts["why"] and "nopti" in bts["remedy"]
