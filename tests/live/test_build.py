# SPDX-License-Identifier: GPL-2.0-only
"""The Makefile, on a copy of the tree with the objects that are already built."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import jsonschema
import hosts
import pytest
from puppet import command
from sessions import until
from trees import LIBPERF, OURS, ROOT, Tree

# One copy of the tree, which is built without sanitizers in CI.
pytestmark = [pytest.mark.xdist_group("build"), pytest.mark.plain, pytest.mark.timeout(1860)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("tree") / "copy")


def compiled(made):
    return {source for what, source in made if what in ("CC", "BPF")}


def test_nothing_is_made_when_nothing_has_changed(tree):
    assert tree.make("all") == set()


def test_the_header_between_kernel_and_program_makes_both_sides_anew(tree):
    made = compiled(tree.made_after_touch("bpf/shared.h"))
    assert {"bpf/profile.bpf.c", "bpf/counters.bpf.c"} <= made
    assert tree.sources_that_include('"shared.h"') <= made
    assert "user/base/embedded.c" in made, "the objects are part of the program"
    assert "user/base/cpus.c" not in made, "what has nothing to do with it stays"
    assert tree.make("all") == set()


def test_the_header_of_the_kernel_side_makes_that_side_anew(tree):
    including = tree.sources_that_include('"table.bpf.h"')
    for source in set(including):  # a program may include another one and add to it
        including |= tree.sources_that_include(f'"{os.path.basename(source)}"')
    assert compiled(tree.made_after_touch("bpf/table.bpf.h")) == including & set(tree.programs()) | {"user/base/embedded.c"}


def test_a_header_makes_what_includes_it(tree):
    made = compiled(tree.made_after_touch("user/record/samples.h"))
    assert made == tree.sources_that_include('"record/samples.h"') != set()


def test_a_schema_is_taken_into_the_program(tree):
    assert compiled(tree.made_after_touch("schema/count.schema.json")) == {"user/base/embedded.c"}


@pytest.mark.parametrize("version", ["schema/VERSION", "user/python/nhmtap/version.py"])
def test_another_version_is_taken_into_the_program(tree, version):
    made = compiled(tree.made_after_touch(version))
    assert made == tree.sources_with("NHMTAP_VERSION", "SCHEMA_VERSION")
    assert {"user/output/json.c", "user/activity/start.c"} <= made
    assert tree.make("all") == set()


def test_an_event_makes_the_table_anew(tree):
    tree.touch("events/nehalem-ep/memory.json")
    made = tree.make("all")
    assert f"{tree.folder}/gen/known_events.c" in {source for what, source in made if what == "GEN"}
    assert not compiled(made) & tree.programs()


def test_a_schema_that_comes_or_goes_is_noticed(tree):
    new = tree.path / "schema" / "banana.schema.json"
    shutil.copy(tree.path / "schema" / "count.schema.json", new)
    tree.make("all")
    listed = subprocess.run([tree.path / tree.folder / "nhmtap", "schema", "banana"], check=False,
                            capture_output=True)
    assert listed.returncode == 0
    new.unlink()
    tree.make("all")
    listed = subprocess.run([tree.path / tree.folder / "nhmtap", "schema", "banana"], check=False,
                            capture_output=True)
    assert listed.returncode == 1


def test_verbose_shows_the_commands_and_quiet_does_not(tree):
    tree.touch("user/base/cpus.c")
    assert "-c -o" not in tree.run("all").stdout
    tree.touch("user/base/cpus.c")
    assert "-c -o" in tree.run("all", "V=1").stdout


def test_what_install_puts_there_uninstall_removes(tree, tmp_path):
    places = [f"DESTDIR={tmp_path / 'root'}", "prefix=/usr"]
    assert tree.run("install", *places).returncode == 0
    installed = tmp_path / "root" / "usr" / "bin" / "nhmtap"
    done = subprocess.run([installed, "stat", "-e", "cs", "--", "true"], capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    package, = (tmp_path / "root").rglob("py.typed")
    environment = os.environ | {"PYTHONPATH": str(package.parent.parent)}
    environment.pop("NHMTAP", None)  # it must find the program that was installed with it
    test = tmp_path / "test_installed.py"
    test.write_text("def test_it(nhmtap):\n    assert nhmtap.find().path == " f"{str(installed)!r}\n"
                    "    assert nhmtap.stat(['true'], events='page-faults')['page-faults'] > 0\n")
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", test],
                          check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert tree.run("uninstall", *places).returncode == 0
    left = [name for _, _, names in os.walk(tmp_path / "root") for name in names]
    assert left == []


def test_what_the_benchmark_leans_on_is_still_there(tree):
    # This only shows that the benchmark measures; its bounds are not checked. Where Debian 12's
    # perf aborts, the benchmark says so and has no figures to compare with perf.
    done = tree.run("bench", "B=--only plan names --rounds 1 --json")
    assert done.returncode in (0, 2) and "{" in done.stdout, done.stdout + done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"type": "figure"')]
    assert len(figures) >= (1 if "bench: perf" in done.stderr else 6), done.stderr
    assert all(figure["median"] > 0 for figure in figures)


def test_help_lists_the_targets(tree):
    listed = tree.run("help").stdout
    for target in ("all", "demo", "test", "bench", "fuzz", "install", "uninstall", "clean"):
        assert f"make {target} " in listed
    assert "T=tests/pure/test_plan.py runs that and nothing else" in listed


def test_one_file_of_tests_is_run_and_nothing_else(tree):
    done = tree.run("test", "T=tests/pure/test_loads.py -rA --reruns 0", "jobs=1")
    ran = set(re.findall(r"^PASSED (\S+\.py)::", done.stdout, re.M))
    assert (done.returncode, ran) == (0, {"tests/pure/test_loads.py"}), done.stdout + done.stderr
    # Without SANITIZE=0, a run of these tests under sanitizers would put them into the plan.
    plan = tree.run("-n", "test", "T=tests/pure", "SANITIZE=0").stdout
    assert "SANITIZE" not in plan and "tests/machine" not in plan
    for environment, whole in (("", False), ("1", True)):
        plan = tree.run("-n", "test", "SANITIZE=0", "MAKE=echo", environment={"CI": environment}).stdout
        assert ("-m 'not thorough'" not in plan) == ("-m plain" in plan) == ("SANITIZE=1" in plan) == whole
    assert "-m 'not plain'" in tree.run("-n", "test", "SANITIZE=1", environment={"CI": "1"}).stdout


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_both_passes_end_when_they_are_interrupted(tree, tmp_path):
    """The sanitized one is the first make in PATH, whose child does not end with it: pytest is the child of make's shell, and says
    that it has begun when a signal ends it."""
    (tree.path / tree.folder / "sanitize").mkdir(exist_ok=True)
    child, begun = tmp_path / "child", tmp_path / "begun"
    (tmp_path / "make").write_text(f"#!/bin/sh\necho failed so far\nsleep 600 &\necho $! > {child}\nwait\n")
    (tmp_path / "make").chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    with open(tmp_path / "said", "wb") as out:
        process = subprocess.Popen(["env", "--default-signal=INT", shutil.which("make"), f"O={tree.folder}", f"LIBPERF={LIBPERF}", "SANITIZE=0", "T=",
                                    "MAKE=true", "needs_machine=", f"pytest=sh -c 'touch {begun}; exec sleep 600'; :", "test"],
                                   cwd=tree.path, env=clean | {"CI": "1", "PATH": f"{tmp_path}:{os.environ['PATH']}"}, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    said = (tmp_path / "said").read_text
    until(lambda: begun.exists() and child.exists() and child.read_text().endswith("\n"), said)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) and "failed so far" in said(), said()
    until(lambda: has_ended(int(child.read_text())), lambda: f"{said()}\nits child goes on")


@pytest.mark.parametrize("target", ["test-inside", "test-lent", "test-rootless"])
def test_each_way_to_run_the_tests_finds_them(tree, target):
    """Running them takes minutes."""
    done = tree.run(target, "T=tests/live/test_control.py --collect-only", "jobs=1")
    assert done.returncode == 0 and "tests/live/test_control.py::" in done.stdout, done.stdout + done.stderr


def tools_of_nobody(tmp_path, programs):
    """A folder with these programs only, for a user who can't install anything."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for path in programs:
        name = os.path.basename(path)
        if name != "id" and not (tools / name).exists():
            (tools / name).symlink_to(path)
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    (tools / "id").chmod(0o755)
    return tools


def test_a_tool_that_is_missing_is_named_by_its_package(tree, tmp_path):
    tools = tools_of_nobody(tmp_path, (
        os.path.join(folder, name) for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
        for name in os.listdir(folder) if not name.startswith("clang")))
    done = tree.run(f"O={tmp_path / 'elsewhere'}", "PYTHON=true", "all",
                    environment={"PATH": str(tools)})
    assert done.returncode != 0
    assert "missing, by the Debian package that has it: clang \n" in done.stderr
    assert "apt-get install clang" in done.stderr


def test_each_package_is_missed_where_there_is_nothing_but_a_compiler(tree, tmp_path):
    tools = tools_of_nobody(tmp_path, map(shutil.which, ("sh", "mkdir", "touch", "cc", "as")))
    done = tree.run("-k", f"O={tmp_path / 'elsewhere'}", "CC=cc -nostdinc",
                    f"PYTHON={shutil.which('python3', path='/usr/bin')} -S -E", "packages",
                    environment={"PATH": str(tools), "SANITIZE": ""},
                    executable=shutil.which("make"))
    with open(tree.path / "user" / "packaging" / "packages.txt", encoding="utf-8") as file:
        groups = dict(re.findall(r"^\[(\w+)\]\n(.*?)(?:\n\n|\Z)", file.read(), re.S | re.M))
    packages = {line.split("|")[0].strip() for group in ("build", *PARTS, "test", "image") for line in groups[group].splitlines()}
    missing = {name for line in done.stderr.splitlines() if line.startswith("missing, ")
               for name in line.split(": ")[1].split()}
    assert missing == packages - {"gcc", "python3"}


# What can be left out: a header of its library, and a run that needs it.
PARTS = {"curl": ("curl/curl.h", ["stat", "-o", "otlp=http://127.0.0.1:9/"]),
         "microhttpd": ("microhttpd.h", ["stat", "--listen", "tcp:127.0.0.1:0"]),
         "seccomp": ("seccomp.h", ["profile", "-e", "page-faults:u", "-c", "1", "--by", "symbol"]),
         "ncurses": ("curses.h", ["top"]),
         "capstone": ("capstone/capstone.h", ["profile", "-e", "page-faults:u", "-c", "1", "--annotate", "main"])}
SOME_PARTS = [parts for number in (len(PARTS), 1) for parts in itertools.combinations(PARTS, number)]


@pytest.fixture
def whole_again(tree):
    yield
    tree.make("all")


@pytest.mark.parametrize("parts", SOME_PARTS, ids="-".join)
def test_any_of_five_libraries_can_be_left_out(tree, tmp_path, whole_again, parts):
    """As if their packages were not there, so that make would install them if it asked for them."""
    real = shutil.which("pkg-config")
    fake = tmp_path / "pkg-config"
    fake.write_text("#!/bin/sh\ncase \"$*\" in %s) exit 1 ;; esac\nexec %s \"$@\"\n" % (
        "|".join(f"*{part}*" for part in parts), real))
    fake.chmod(0o755)
    built = tree.run(f"WITHOUT={','.join(parts)}", "V=1", "CI=1", "all", environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert built.returncode == 0 and "missing" not in built.stderr, built.stdout + built.stderr
    linked, = re.findall(r" -o \S+/nhmtap (.*?) -", built.stdout)
    for part, (header, _) in PARTS.items():
        callers = tree.sources_that_include(f"<{header}>")
        assert [caller.replace(".c", ".o") in linked for caller in callers] == [part not in parts]

    def run(*arguments):
        return subprocess.run([tree.path / tree.folder / "nhmtap", *arguments], capture_output=True, text=True, timeout=60, check=False)

    version = run("--version", "-v").stdout
    assert set(re.findall("^built without (.*)$", version, re.M)) == {f"lib{part}" for part in parts}
    known = json.loads(run("--version", "--json").stdout)
    jsonschema.validate(known, json.loads(run("schema", "version").stdout))
    assert set(known["built_without"]) == {f"lib{part}" for part in parts}
    assert {part for part in PARTS if f"lib{part}" in known["libraries"]} == set(PARTS) - set(parts)
    for part in parts:
        said = run(*PARTS[part][1], "--", "true")
        if part == "capstone":  # instructions are missing then, where there would be some
            assert said.returncode == 0
            continue
        assert f"this nhmtap was built without lib{part}" in said.stdout + said.stderr
        if part == "seccomp":  # a record tells why code has no names
            assert said.returncode == 0 and json.loads(said.stdout.splitlines()[-1])["names"]["unnamed"]["failed"] > 0
        else:
            assert said.returncode == 2 and f"make, with no WITHOUT={part}" in said.stderr + said.stdout
    if "microhttpd" in parts:  # an output that a page would be is not told to listen
        page = run("stat", "-e", "page-faults", "-o", "openmetrics=listen", "--", "true")
        assert page.returncode == 2 and "was built without libmicrohttpd" in page.stderr and "give --listen" not in page.stderr
    counted = run("stat", "-e", "page-faults", "--format", "json", "--", "true")
    assert counted.returncode == 0 and '"page-faults"' in counted.stdout


def test_a_part_that_there_is_not_cant_be_left_out(tree):
    refused = tree.run("WITHOUT=curl,libcurl", "all")
    assert refused.returncode == 2 and "no part is called 'libcurl'; there are curl microhttpd seccomp ncurses capstone" in refused.stderr


def test_an_activity_and_a_format_are_added_by_their_files_alone(tree, tmp_path):
    """Help, options, CONFIG, schema and formats all follow from the added files."""
    shutil.copytree(os.path.join(ROOT, "tests", "extension"), tree.path, dirs_exist_ok=True)
    made = compiled(tree.make("all"))
    assert made == {"user/pulse/pulse.c", "user/output/beats.c", "bpf/pulse.bpf.c", "user/base/embedded.c"}
    program = str(tree.path / tree.folder / "nhmtap")

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              check=False)

    assert "an activity of a test" in run("--help").stdout
    assert all(word in run("pulse", "--help").stdout for word in ("--beat N", "beats", "--all-cpus"))

    out = tmp_path / "out"
    pulse = ["-e", "page-faults", "-c", "1", "-o", out, "--", *command("faults=300")]
    assert run("pulse", "--beat", "3", *pulse).returncode == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    for record in records:
        jsonschema.validate(record, json.loads(run("schema", record["type"]).stdout))
    assert [r["type"] for r in records] == ["start", "pulse", "end"]
    assert {r["activity"] for r in records} == {"pulse"} and records[1]["beat"] == 3
    assert records[1]["samples"]["aggregated"] == sum(e["samples"] for e in records[1]["entries"]) >= 300
    assert "cpu" in records[1]["entries"][0]

    assert run("pulse", "--format", "beats", *pulse).returncode == 0
    assert out.read_text() == "start of pulse\npulse of pulse\nend of pulse\n"
    refused = run("pulse", "--format", "beats", "-e", "cs,page-faults", "-c", "1", "--", "true")
    assert refused.returncode == 1 and "a beat is of one" in refused.stderr
    assert run("stat", "--format", "beats", "--", "true").returncode == 1

    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [
        {"name": "heart", "command": "pulse", "beat": 4, "event": "page-faults", "count": 1}]}))
    assert run("run", "--check", config, "--", "true").returncode == 0
    schema = json.loads(run("schema", "config").stdout)
    assert "beat" in json.dumps(schema)
    jsonschema.validate(json.loads(config.read_text()), schema)


# A model that no Intel CPU has, so that no table has it.
SIAMESE = {"name": "siamese", "title": "A CPU of a test", "vendor": "GenuineIntel", "family": 6,
           "models": ["0xF7"], "general_counters": 6, "fixed_counters": 3}
CATS = {"source": "reasoning, a test",
        "events": [{"name": "CATS.SEEN", "description": "A cat is seen", "code": "0xA5", "umask": "0x02",
                    "counters": [0, 5], "period": 2000}]}
CATS_PER_DOG = [{"name": "cat_rate", "formula": "CATS.SEEN / 2", "unit": "pairs of cats",
                 "description": "Cats", "source": "reasoning"}]


def test_a_cpu_is_added_by_a_folder_and_a_row(tree, tmp_path):
    """Its name, its events and its processors are read from the tables alone."""
    events = tree.path / "events"
    cpus = json.loads((events / "cpus.json").read_text())
    (events / "cpus.json").write_text(json.dumps([*cpus, SIAMESE]))
    (events / "siamese").mkdir()
    (events / "siamese" / "cats.json").write_text(json.dumps(CATS))
    (events / "siamese" / "metrics.json").write_text(json.dumps(CATS_PER_DOG))
    assert compiled(tree.make("all")) == {f"{tree.folder}/gen/known_events.c"}

    def run(*arguments):
        done = subprocess.run([str(tree.path / tree.folder / "nhmtap"), *map(str, arguments)], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    machine = "--host-root=" + hosts.build(tmp_path / "siamese", hosts.NEHALEM | {
        "proc/cpuinfo": hosts.cpuinfo(model=0xf7)})
    for where in (["--cpu", "siamese"], [machine]):
        listed, = run("list", *where, "--json", "CATS.SEEN")
        assert (listed["cpu"], listed["section"], listed["config"]) == ("siamese", "cats", "0x2a5")
        metric, = run("list", *where, "--json", "cat_rate")
        assert metric["cpu"] == "siamese"
        event, = run("explain", *where, "--format", "json", "cats:seen:u")
        assert event["event"]["attr"]["config"] == "0x2a5"
    start = run("doctor", machine, "--need", "software", "--format", "json")[0]
    assert start["host"]["cpu"]["events"] == "siamese"
