# SPDX-License-Identifier: GPL-2.0-only
"""What samples of a software event stand for if the event comes in bursts and the kernel chooses the periods (-F, the default).
The program touches the pages of a mapping one after the other, so the address of a fault says how many there were before."""
import os
import re
import subprocess

import pytest
import records
from cgroups import inside
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from puppet import pinned, wait_asleep

BASE, PAGE, REGION = 0x600000000000, 4096, 1 << 30
WORKERS = 3
FUNCTIONS = {"o": "often", "s": "seldom", "r": "rarely"}
SOURCE = f"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **steps;
static __thread char *at;

#define TOUCHES(name) \\
	__attribute__((noinline)) void name(long n) \\
	{{ \\
		for (char *page = at; n--; page += {PAGE}, at = page) \\
			*(volatile char *)page = 1; \\
		__asm__ volatile(""); \\
	}}
TOUCHES(often)
TOUCHES(seldom)
TOUCHES(rarely)

/* Each step is a function and how many pages it touches, or "p" and how many microseconds it pauses. */
static void *work(void *region)
{{
	at = region;
	for (char **step = steps; *step; step++) {{
		long n = atol(*step + 1);
		struct timespec pause = {{.tv_nsec = n * 1000}};

		if (**step == 'o')
			often(n);
		else if (**step == 's')
			seldom(n);
		else if (**step == 'r')
			rarely(n);
		else
			nanosleep(&pause, NULL);
	}}
	return NULL;
}}

int main(int argc, char **argv)
{{
	char *regions = mmap((void *){BASE}, {WORKERS}L * {REGION}, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	int nr = strcmp(argv[1], "alone") ? {WORKERS} : 1;
	pthread_t threads[{WORKERS}];

	madvise(regions, {WORKERS}L * {REGION}, MADV_NOHUGEPAGE);
	if (!strcmp(argv[2], "wait"))
		getchar();
	steps = argv + 3;
	for (long i = 0; i < nr; i++)
		if (!strcmp(argv[1], "threads"))
			pthread_create(&threads[i], NULL, work, regions + i * {REGION});
		else if (!strcmp(argv[1], "alone") || !fork())
			return work(regions + i * {REGION}) != NULL;
	for (int i = 0; i < nr && !strcmp(argv[1], "threads"); i++)
		pthread_join(threads[i], NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}}
"""
EVENT = ["-e", "page-faults:u"]
STARTING = 200  # faults of a program's start, at most
# How the program is measured: options besides those of its target, whether others may be measured too.
SCOPES = {"command": ([], False), "attached": (["-p"], False), "thread": (["-t"], False), "cgroup": (["-G"], False),
          "all": (["-a"], True), "cpu": (["-C", str(min(os.sched_getaffinity(0)))], True)}
BURSTS = st.lists(st.one_of(st.tuples(st.sampled_from("osr"), st.integers(1, 3000)), st.tuples(st.just("p"), st.integers(1, 30000))),
                  min_size=2, max_size=24)
PACES = {"default": [], "seldom": ["-F", "97"], "often": ["-F", "997"], "share": ["--cpu-share", "20%"]}
# Nine of ten faults are often()'s, and a burst of it ends before the kernel has adapted the period.
WORST = [("o", 1000), ("p", 20000), ("s", 100), ("p", 20000)] * 4
PROPERTY = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@pytest.fixture(scope="module")
def bursts(tmp_path_factory):
    path = tmp_path_factory.mktemp("bursts") / "bursts"
    subprocess.run(["gcc", "-O1", "-g", "-fno-ipa-icf", "-pthread", "-x", "c", "-", "-o", path], input=SOURCE, text=True, check=True)
    return os.fspath(path)


def told(steps):
    return [f"{what}{n}" for what, n in steps]


def measure(nhmtap, cgroup, command, scope, program, mode, steps, *more):
    """Runs the command over the program, which is bound to a CPU. Returns what it said, and the process of the program."""
    options = [command, *EVENT, *more, *SCOPES[scope][0]]
    if scope in ("attached", "thread"):
        with subprocess.Popen([*pinned(), program, mode, "wait", *told(steps)], stdin=subprocess.PIPE) as process:
            wait_asleep(process.pid)
            measuring = nhmtap.attach(*options, process.pid)
            process.stdin.close()
            result, pid = nhmtap.finish(measuring), process.pid
    else:
        ran = [*pinned(), program, mode, "now", *told(steps)]
        if scope == "cgroup":
            options, ran = [*options, cgroup[0]], [*inside(cgroup[1]), *ran]
        result = nhmtap(*options, "--", *ran)
        pid = result.one("end")["command"]["pid"]
    assert result.status == 0, result.err
    return result, pid


def function_of_each_fault(steps):
    return [FUNCTIONS[what] for what, n in steps if what != "p" for _ in range(n)]


@settings(max_examples=6, **PROPERTY)
@given(st.sampled_from(list(SCOPES)), BURSTS, st.sampled_from(list(PACES)))
@example("command", WORST, "default")
@example("attached", WORST, "share")
@example("thread", WORST, "default")
@example("cgroup", WORST, "default")
@example("all", WORST, "default")
@example("cpu", WORST, "often")
def test_each_sample_stands_for_what_came_since_the_one_before(nhmtap, cgroup, bursts, scope, steps, pace):
    result, pid = measure(nhmtap, cgroup, "stream", scope, bursts, "alone", steps, "--fields", "addr,symbol,period,cpu,pid", *PACES[pace])
    by_construction, before, since, others = function_of_each_fault(steps), None, 0, 0
    cpus = {sample["cpu"] for sample in result.of("sample") if sample["pid"] == pid}
    for sample in result.of("sample"):
        fault, rest = divmod(int(sample["address"], 16) - BASE, PAGE)
        if sample["cpu"] not in cpus:
            continue
        since += sample["period"]
        if sample["pid"] != pid or rest or not 0 <= fault < len(by_construction):
            continue
        assert sample["code"]["symbol"] == by_construction[fault]
        if before is not None:
            others += since - (fault - before)
            assert since >= fault - before
        before, since = fault, 0
    if not SCOPES[scope][1]:
        assert others <= STARTING


def closes(value, stood_for, record, busy):
    """Whether the weights so far and what is in no sample are the whole count so far. The count is read before the samples, so
    those of what is still busy may stand for more."""
    unsampled = record["samples"].get("unsampled", 0)
    return stood_for + unsampled == value or (busy and not unsampled and stood_for > value)


@settings(max_examples=6, **PROPERTY)
@given(st.sampled_from(list(SCOPES)), st.sampled_from(["alone", "threads", "children"]), BURSTS, st.sampled_from(list(PACES)))
@example("command", "alone", WORST, "default")
@example("command", "threads", WORST, "default")
@example("command", "children", WORST, "default")
@example("attached", "threads", WORST, "share")
@example("cgroup", "children", WORST, "default")
@example("all", "children", WORST, "default")
def test_what_the_samples_stand_for_and_what_came_after_the_last_ones_is_the_value(nhmtap, cgroup, bursts, scope, mode, steps, pace):
    result, _ = measure(nhmtap, cgroup, "profile", scope, bursts, mode, steps, "--by", "comm", *PACES[pace])
    record, faults = result.one("profile"), len(function_of_each_fault(steps)) * (1 if mode == "alone" else WORKERS)
    assert closes(record["value"], sum(entry["period"] for entry in record["entries"]), record, busy=SCOPES[scope][1])
    assert result.one("end")["samples"].get("unsampled", 0) == record["samples"].get("unsampled", 0)
    if not SCOPES[scope][1]:
        threads_alone = scope == "thread" and mode != "alone"  # the first thread only starts the others
        assert (0 if threads_alone else faults) <= record["value"] <= faults + STARTING * (1 + WORKERS)


def test_the_parts_of_a_run_add_up_to_what_all_of_it_has(nhmtap, bursts):
    result = nhmtap("profile", *EVENT, "--by", "symbol", "-I", "20", "--", bursts, "threads", "now", *told(WORST))
    records = result.of("profile")
    stood_for = [sum(entry["period"] for entry in record["entries"]) for record in records]
    for nr in range(1, len(records) + 1):  # what is in no sample is of the run so far
        assert closes(sum(r["value"] for r in records[:nr]), sum(stood_for[:nr]), records[nr - 1], busy=nr < len(records))
    assert [r["samples"].get("unsampled_before", 0) for r in records] == [0] + [r["samples"].get("unsampled", 0) for r in records[:-1]]
    assert len(records) > 2


def test_a_table_says_how_much_no_sample_stands_for(nhmtap):
    """Each child has few faults, and most end before the period that they have inherited."""
    result = nhmtap("profile", *EVENT, "-F", "20", "--by", "comm", "--format", "table", "--", "sh", "-c",
                    "i=0; while [ $((i += 1)) -le 50 ]; do /bin/true; done")
    assert result.status == 0 and "# no sample stands for " in result.out
    result = nhmtap("profile", *EVENT, "-c", "1", "--by", "comm", "--format", "table", "--", "true")
    assert result.status == 0 and "no sample stands for" not in result.out


def test_a_table_says_it_of_those_intervals_in_which_it_came(nhmtap, bursts, tmp_path):
    """What the first children leave is less than what a process has later, of whose faults nearly all are in samples."""
    paths = {form: tmp_path / form for form in ("json", "table")}
    nhmtap("profile", *EVENT, "-F", "4000", "-I", "100", "--by", "comm", *(f"-o{form}={path}" for form, path in paths.items()), "--", "sh", "-c",
           'i=0; while [ $((i += 1)) -le 50 ]; do /bin/true; done; sleep 0.3; "$@"', "sh", bursts, "alone", "now", *told([("o", 20000)]))
    blocks, new = records.parse(paths["json"].read_text(encoding="utf-8")), []
    for record in (r for r in blocks if r["type"] == "profile"):
        samples = record["samples"]
        new.append((samples.get("unsampled", 0) - samples.get("unsampled_before", 0), record["value"]))
    said = re.findall(r"^# no sample stands for ([\d,]+) of ([\d,]+),", paths["table"].read_text(encoding="utf-8"), re.M)
    assert [tuple(int(number.replace(",", "")) for number in pair) for pair in said] == [(n, of) for n, of in new if n > of / 10], new
    assert 0 < len(said) < len([of for _, of in new if of]), new


def test_a_fixed_period_is_what_each_sample_stands_for(nhmtap, bursts):
    result = nhmtap("stream", *EVENT, "-c", "7", "--fields", "period", "--", bursts, "alone", "now", *told(WORST))
    assert {sample["period"] for sample in result.of("sample")} == {7}


MANY = """
#include <pthread.h>
#include <sys/mman.h>
#define PAGES 4
static char *at;
static volatile char slow[5000 * 4096] __attribute__((aligned(4096)));
static void *touch(void *nothing)
{
	for (int i = 0; i < PAGES; i++)
		*(volatile char *)(at += 4096) = 1;
	return nothing;
}
static void *threads_in_turn(void *failed)
{
	for (int i = 0; i < THREADS; i++) {
		char *pages = mmap(0, (PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_t thread;
		at = pages;
		madvise(pages, (PAGES + 1) * 4096, MADV_NOHUGEPAGE);
		if (pthread_create(&thread, 0, touch, 0) || pthread_join(thread, 0))
			return failed;
		munmap(pages, (PAGES + 1) * 4096);
	}
	return 0;
}
int main(void)
{
	pthread_t starter;
	void *failed = 0;
	madvise((void *)slow, sizeof(slow), MADV_NOHUGEPAGE);
	for (int i = 0; i < 5000; i++) { /* the kernel chooses a short period, which the threads inherit */
		if (i == 4000 && (pthread_create(&starter, 0, threads_in_turn, (void *)slow) || pthread_join(starter, &failed) || failed))
			return 1;
		slow[i * 4096] = 1;
		for (volatile int n = 0; n < 100000; n++)
			;
	}
	return 0;
}
"""


@pytest.mark.parametrize("threads, forgotten", [(9000, False), (30000, True)])
def test_a_thread_that_is_forgotten_beside_many_others_is_told_and_weighs_no_more_than_there_was(nhmtap, tmp_path, threads, forgotten):
    """What 16,384 threads have counted is remembered, and that of 8,192 surely (shared.h). The first thread waits until the others,
    one after the other, have ended, and then goes on. That there were many others is no reason to doubt what there was."""
    program = tmp_path / "many"
    subprocess.run(["gcc", "-O1", "-pthread", f"-DTHREADS={threads}", "-x", "c", "-", "-o", program], input=MANY, text=True, check=True)
    for _ in range(10):
        record = nhmtap("profile", *EVENT, "-F", "20000", "--by", "comm", "--", program).one("profile")
        if record["samples"]["aggregated"] > 2 * threads:
            break  # else the kernel has chosen a long period: a thread had one sample, and nothing of it needs to be remembered
    stood_for = sum(entry["period"] for entry in record["entries"])
    assert record["samples"]["aggregated"] > 2 * threads and record["samples"].get("at_least", False) == forgotten
    # What is forgotten weighs a period, about 1, once more.
    assert 0 <= stood_for + record["samples"].get("unsampled", 0) - record["value"] <= 10 * forgotten
    assert stood_for > record["value"] / 2
