# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as pages (openmetrics, prometheus), and files for each interval (%t)."""
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess

import callers
import pages
import pprof
import pytest
from asked import ask
from puppet import command
from records import Result, program
from sessions import DAY, Session, faults, write

PAGE, COUNTS = "page", "counts"


@pytest.fixture
def both(nhmtap, tmp_path):
    """Runs nhmtap with two outputs: the page, and the records of the same run."""
    def run(*arguments):
        nested, page = tmp_path / "nested", tmp_path / PAGE
        result = nhmtap(arguments[0], "-o", nested, "-o", f"openmetrics={page}", *arguments[1:])
        assert result.status == 0, result.err
        return Result(0, nested.read_text(), ""), page.read_text()
    return run


RUNS = {
    "stat": ["stat", "-a", "-e", "page-faults,cs,task-clock", "-M", "cpus_utilized", "--per", "cpu"],
    "profile": ["profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm,pid"],
    "series": ["profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm,pid", "--series", "4"],
    "stacks": ["profile", "-g", "-e", "page-faults", "-c", "1", "--series", "1000"],
    "mem": ["mem", "-e", "page-faults", "-c", "1", "--by", "page,symbol,cpu", "--top", "5", "--series", "1000"],
}


@pytest.mark.parametrize("which", RUNS)
def test_sums_are_those_of_the_records(both, which):
    nested, page = both(*RUNS[which], "--", *command("faults=500", "exit=0"))
    for event, cpu in {(record["event"], record.get("cpu")) for record in nested.of("count")}:
        cpus = {} if cpu is None else {"cpu": cpu}
        assert pages.total(page, "nhmtap_events_total", event=event, **cpus) == sum(
            record["scaled"] for record in nested.of("count", event=event) if record.get("cpu") == cpu)
    for kind in ("profile", "mem"):
        accounts = [record["samples"] for record in nested.of(kind) if "samples" in record]
        whole = sum(account["aggregated"] for account in accounts)
        assert pages.total(page, "nhmtap_samples_total") == whole or not accounts
        assert pages.total(page, "nhmtap_samples_lost_total") == sum(sum(a["lost"].values()) for a in accounts)\
            or not accounts
        if "--series" in RUNS[which]:
            assert pages.total(page, f"nhmtap_{kind}_entries_total") == whole
    for metric in nested.of("metric"):
        assert pages.total(page, "nhmtap_cpus_utilized_cpus", cpu=metric["cpu"]) == pytest.approx(metric["value"])


def test_functions_and_pids_are_labels_only_where_a_number_of_series_was_given(both):
    _, page = both(*RUNS["profile"], "--", *command("faults=500", "exit=0"))
    labels = {label for family in pages.families(page).values() for sample in family.samples
              for label in sample.labels}
    assert labels <= {"activity", "event", "cause", "version"}


def test_there_are_no_more_series_than_asked_for_and_the_rest_is_in_other(both):
    _, page = both(*RUNS["series"], "--", *command("faults=500", "exit=0"))
    samples = pages.families(page)["nhmtap_profile_entries"].samples
    own = [sample for sample in samples if sample.labels["pid"] != "other"]
    assert len(own) == 4 and sum(sample.value for sample in samples) > sum(sample.value for sample in own)


def test_a_stack_is_counted_at_its_innermost_function(both):
    _, page = both(*RUNS["stacks"], "--", *command("faults=500", "exit=0"))
    assert pages.total(page, "nhmtap_profile_entries_total", symbol="touch", module=program("puppet")) >= 500
    assert not any("stack" in sample.labels for family in pages.families(page).values() for sample in family.samples)


def test_counters_grow_from_interval_to_interval(nhmtap, tmp_path, puppet):
    page = tmp_path / PAGE
    with Session(nhmtap, tmp_path, [faults(COUNTS, "stat", pid=str(puppet.pid))],
                 outputs=[{}, {"path": str(page), "format": "openmetrics"}]) as session:
        for so_far in (100, 200, 300):
            puppet.do("faults=100")
            session.do("snapshot")
            assert pages.total(page.read_text(), "nhmtap_events_total", activity=COUNTS) == so_far
        session.end()
    assert pages.families(page.read_text())["nhmtap_events"].type == "counter"


def test_who_reads_a_page_finds_it_whole_at_any_time(nhmtap, tmp_path):
    page = tmp_path / PAGE
    process = subprocess.Popen(nhmtap.command(
        "stat", "-a", "-e", "page-faults,cs", "-I", "5", "--interval-count", "100", "--per", "cpu", "-o",
        f"openmetrics={page}"))
    read = set()
    while process.poll() is None:
        if page.exists():
            text = page.read_text()
            assert text.endswith("# EOF\n")
            read.add(text)
    assert process.wait() == 0 and len(read) > 1
    assert os.listdir(tmp_path) == [PAGE]


def test_the_older_form_is_as_promtool_wants_it(nhmtap):
    for arguments in (["mem", "-e", "page-faults", "-c", "1", "--series", "50"],
                      ["stat", "-a", "-e", "task-clock,cs", "-M", "cpus_utilized", "--per", "cpu"]):
        result = nhmtap(*arguments, "--format", "prometheus", "--", "true")
        assert "nhmtap_build_info" in result.out and pages.check(result.out) == (0, "")


HOSTILE = 'says "so", \\ and more {x="1"} # TYPE y'


@pytest.mark.parametrize("form", ["prometheus", "openmetrics"])
def test_descriptions_and_labels_of_any_kind_leave_the_page_valid(nhmtap, tmp_path, form):
    folder = tmp_path / "tables" / "generic"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps([
        {"name": "mine", "formula": "2 * page-faults", "unit": "things", "description": HOSTILE, "source": "reasoning"}]))
    hostile = tmp_path / 'a "quoted" \\ name'
    hostile.symlink_to("/usr/bin/true")
    result = nhmtap("stat", f"--events-dir={folder.parent}", "-e", "page-faults", "-M", "mine", "-o",
                    f"{form}={tmp_path / 'page'}", "-o", tmp_path / "x", "--", hostile)
    assert result.status == 0, result.err
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert 'says "so"' in page or 'says \\"so\\"' in page
    if form == "prometheus":
        assert pages.check(page) == (0, "")
    else:
        assert pages.families(page)["nhmtap_mine_things"].documentation == HOSTILE


def test_an_event_that_never_ran_is_no_counter_of_zero(nhmtap, tmp_path):
    """Alignment faults do not occur on x86, so they are not counted."""
    result = nhmtap("stat", "-e", "page-faults,alignment-faults", "-o", f"openmetrics={tmp_path / 'page'}", "-o", tmp_path / "x",
                    "--", "true")
    assert result.status == 0, result.err
    events = {sample.labels["event"] for sample in pages.families((tmp_path / "page").read_text())["nhmtap_events"].samples}
    assert events == {callers.name_of("page-faults")}


@pytest.mark.parametrize("form, media", [("openmetrics", "application/openmetrics-text"),
                                         ("prometheus", "text/plain")])
def test_a_scrape_has_what_was_counted_up_to_the_last_interval(nhmtap, tmp_path, puppet, form, media):
    place = f"unix:{tmp_path}/http"
    with Session(nhmtap, tmp_path, [faults(COUNTS, "stat", pid=str(puppet.pid))], listen=place,
                 outputs=[{}, {"path": "listen", "format": form}]) as session:
        status, before, kind = ask(place, "/metrics")
        assert status == 200 and kind.startswith(media) and "nhmtap_events_total" not in before
        puppet.do("faults=100")
        session.do("snapshot")
        page = ask(place, "/metrics")[1]
        assert "} 100\n" in page and f'activity="{COUNTS}"' in page
        session.end()


def test_a_session_that_ends_has_its_last_page_as_long_as_others_are_written_to(nhmtap, tmp_path, puppet):
    place = f"unix:{tmp_path}/http"
    os.mkfifo(tmp_path / "full")
    full = os.open(tmp_path / "full", os.O_RDWR | os.O_NONBLOCK)  # nobody reads
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(full, bytes(4096))
    with Session(nhmtap, tmp_path, [faults(COUNTS, "stat", pid=str(puppet.pid))], listen=place,
                 outputs=[{}, {"path": str(tmp_path / "full")}, {"path": "listen", "format": "openmetrics"}]) as session:
        puppet.do("faults=100")
        session.do("snapshot")
        session.process.terminate()
        answers = []
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                answers.append(ask(place, "/metrics"))
        os.close(full)
        session.process.wait()
    assert answers and {status for status, _, _ in answers} == {200}
    assert all(f'activity="{COUNTS}"' in page and page.endswith("# EOF\n") for _, page, _ in answers)


def test_without_such_an_output_there_is_no_page(nhmtap, tmp_path, puppet):
    place = f"unix:{tmp_path}/http"
    with Session(nhmtap, tmp_path, [faults(COUNTS, "stat", pid=str(puppet.pid))],
                 listen=place) as session:
        status, said, _ = ask(place, "/metrics")
        assert status == 404 and "openmetrics=listen" in said
        session.end()


@pytest.mark.parametrize("outputs, listen, why", [
    ([{"path": "listen", "format": "openmetrics"}], None, "nobody listens"),
    ([{"path": "listen", "format": "openmetrics"}] * 2, True, "/metrics already"),
    ([{"path": "listen"}], True, "json makes no page")])
def test_a_page_that_nobody_could_read_is_refused(nhmtap, tmp_path, outputs, listen, why):
    config = {"activities": [faults(COUNTS, "stat", all_cpus=True)], "outputs": outputs}
    if listen:
        config["listen"] = f"unix:{tmp_path}/http"
    result = nhmtap("run", write(tmp_path / "config", config))
    assert result.status == 1 and why in result.err and "/outputs/" in result.err


# --- a file for each interval ---------------------------------------------------------------------


def test_a_profile_for_each_interval_is_a_file_named_by_its_beginning(nhmtap, tmp_path, puppet):
    files = tmp_path / "files"
    files.mkdir()
    with Session(nhmtap, tmp_path, [{**faults("samples", "profile", pid=str(puppet.pid)),
                                     "by": "stack"}],
                 outputs=[{}, {"path": f"{files}/%t.pb.gz", "format": "pprof"},
                          {"path": f"{files}/%t.folded", "format": "folded"}]) as session:
        for number in (10, 20, 30):
            puppet.do(f"faults={number}")
            session.do("snapshot")
        result = session.end()
    records = [r for r in result.of("profile") if "samples" in r]
    profiles = [pprof.read(path) for path in sorted(files.glob("*.pb.gz"))]
    sums = [r["samples"]["aggregated"] for r in records]
    assert sums[:3] == [10, 20, 30]
    assert [sum(s.value[0] for s in p.sample) for p in profiles] == sums
    moments = [r["start_time"].replace("-", "").replace(":", "") for r in records]
    assert [path.name for path in sorted(files.glob("*.pb.gz"))] == [f"{at}.pb.gz" for at in moments]
    folded = [sum(int(line.rpartition(" ")[2]) for line in path.read_text().splitlines())
              for path in sorted(files.glob("*.folded"))]
    assert folded == [one for one in sums if one]
    assert {path.stat().st_mode & 0o777 for path in files.iterdir()} == {0o640}


def test_files_of_records_one_behind_the_other_are_the_stream(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "page-faults", "-I", "10", "-o", tmp_path / "%t.jsonl", "--",
                    "sh", "-c", "sleep 0.05; sleep 0.05")
    assert result.status == 0
    paths = sorted(tmp_path.glob("*.jsonl"))
    whole = Result(0, "".join(path.read_text() for path in paths), "")
    assert len(paths) >= len(whole.of("count")) > 1 and whole.records[-1]["type"] == "end"


def test_a_profile_for_each_interval_needs_a_file_for_each(nhmtap, tmp_path):
    result = nhmtap("profile", "-I", "100", "--format", "pprof", "-o", tmp_path / "x", "--", "true")
    assert result.status == 1 and "DIR/%t.pb.gz" in result.err
    result = nhmtap("profile", "-I", "100", "-o", f"pprof={tmp_path}/no/%t", "--", "true")
    assert result.status == 1 and "no/%t" in result.err


def test_what_comes_when_it_is_ended_by_a_signal_is_written_too(nhmtap, tmp_path, puppet):
    process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "-I", str(DAY), "-p", puppet.pid, "-o",
                            f"folded={tmp_path}/%t", "-o", "-")
    puppet.do("faults=10")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    path, = tmp_path.iterdir()
    assert sum(int(line.rpartition(" ")[2]) for line in path.read_text().splitlines()) == 10


@pytest.mark.parametrize("form", ["openmetrics", "prometheus"])
def test_words_of_a_unit_that_a_metrics_name_ends_with_are_there_once(nhmtap, tmp_path, form):
    """A family's name has to end with its unit: OpenMetrics 1.0, "UNIT"."""
    result = nhmtap("stat", "-M", "page_faults_per_second,cpus_utilized", "-o", f"{form}={tmp_path / 'page'}", "--", "true")
    assert result.status == 0, result.err
    page = (tmp_path / "page").read_text()
    assert re.search("^nhmtap_page_faults_per_second_of_task_clock\\{", page, re.M)
    assert re.search("^nhmtap_cpus_utilized_cpus\\{", page, re.M)
    for name, unit in re.findall(r"^# UNIT (\S+) (\S+)$", page, re.M):
        assert name.endswith(f"_{unit}")
