# SPDX-License-Identifier: GPL-2.0-only
"""CONFIGs made at random of what each member may be: what run --check accepts, run accepts, and what it refuses, run
refuses; what --print-config prints is accepted, means the same, and prints itself. NHMTAP_SEED and NHMTAP_RUNS choose
others."""
import json
import os
import random

from sessions import config_schema, write

SEED, RUNS = int(os.environ.get("NHMTAP_SEED", 1)), int(os.environ.get("NHMTAP_RUNS", 20))
FORMATS = ["json", "flat", "table", "openmetrics", "otlp", "clickhouse", "folded", "pprof", "otlp-profiles", "otlp-profiles-json", "speedscope",
           "firefox", "callgrind"]
PLACES = ["-", "file", "file.%t", "file.zst", "unix:socket", "http://127.0.0.1:1/x", "https://127.0.0.1:1/x", "listen", "folder", "folder/"]
REFUSED = 1, 2


def some(rng, members, chance=0.3):
    """Some of the members, each with one of its values."""
    return {name: rng.choice(values) for name, values in members.items() if rng.random() < chance}


def activity(rng, number):
    command = rng.choice(["stat", "stat", "profile", "mem", "stream"])
    target = rng.choice([{"all_cpus": True}, {"cpu": "0"}, {"pid": str(os.getpid())}, {}])
    members = {"interval_ms": [100, 1000], "retry": [False, True], "delay_ms": [0, 10], "interval_count": [1, 2]}
    if command == "stat":
        members |= {"per": ["cpu", "thread", "core"], "metrics": ["page_faults_per_second", "cpus_utilized"], "expect": [["page-faults<1e9"]]}
    elif command != "stream":
        members |= {"top": [1, 10], "call_graph": [True], "by": ["comm", "symbol,comm", "symbol"]}
    period = {} if command == "stat" else rng.choice([{}, {"count": 1}, {"freq": 99}])
    return {"name": f"a{number}", "command": command, "event": "page-faults", "duration_s": 0.05, **period, **target, **some(rng, members)}


def output(rng, names):
    members = {"format": FORMATS, "queue_bytes": [8192, 100000], "series": [5], "temporality": ["delta", "cumulative"], "headers_file": ["headers"],
               "tls": [{"insecure_skip_verify": True}], "types": [["count"], ["profile", "frames"], ["error", "mem"]]}
    return {"path": rng.choice(PLACES), **some(rng, {"format": FORMATS}, 0.8), **some(rng, members, 0.1),
            **({"activities": rng.sample(names, rng.randint(1, len(names)))} if rng.random() < 0.2 else {})}


def config_of(rng):
    activities = [activity(rng, number) for number in range(rng.randint(1, 3))]
    names = [one["name"] for one in activities]
    members = {"listen": ["unix:metrics"], "heartbeat_s": [5], "resource": [{"service.name": "$${x}"}], "limits": [{"cpu_share": "5%"}, {"memory": "256M"}],
               "outputs": [[output(rng, names) for _ in range(rng.randint(1, 2))]]}
    return {"activities": activities, **some(rng, members, 0.4), **({"outputs": members["outputs"][0]} if rng.random() < 0.8 else {})}


def foreseen(check):
    """What start records say of the activities."""
    return [{name: value for name, value in start.items() if name not in ("time", "run_id", "host", "resource", "config")} for start in check.of("start")]


def judge(nhmtap, folder, config):
    """Returns what --check says of it."""
    def run(*words):
        return nhmtap("run", *words, "--", "true", cwd=folder)

    (folder / "folder").mkdir(parents=True)
    (folder / "headers").write_text("X-Key: x\n")
    told = write(folder / "asked", config).read_text()
    check, said = run("--check", "asked"), run("--print-config", "asked")
    assert check.status in (0, *REFUSED), told
    if said.status == 0:
        config_schema().validate(json.loads(said.out))
        write(folder / "again", said.out)
        assert run("--print-config", "again").out == said.out, told
        again = run("--check", "again")
        assert (again.status, foreseen(again)) == (check.status, foreseen(check)), told
    else:
        assert check.status == said.status, told
    done = run("asked")
    assert (done.status in REFUSED) == (check.status in REFUSED), (told, check.err, done.err)
    assert check.status == 0 or done.err.splitlines()[0] in check.err, (told, check.err, done.err)
    return check.status


def test_a_config_is_judged_alike_by_check_run_and_print(nhmtap, tmp_path):
    print(f"NHMTAP_SEED={SEED}")
    rng = random.Random(SEED)
    outcomes = {judge(nhmtap, tmp_path / str(number), config_of(rng)) for number in range(RUNS)}
    assert outcomes >= {0, 1} or RUNS < 10
