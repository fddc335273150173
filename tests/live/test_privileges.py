# SPDX-License-Identifier: GPL-2.0-only
"""Which of root's privileges a session keeps. With file capabilities or setuid, a caller can read
and write no more than without them."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from callers import LENT, NOBODY, paranoid
from records import FILE, NHMTAP, Result

STORED = os.path.join(os.path.dirname(__file__), "stored", "profile-1.0.0.jsonl")
KEPT = ["CAP_PERFMON", "CAP_BPF", "CAP_SYSLOG", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE",
        "CAP_IPC_LOCK"]


def capabilities(pid):
    """The capability sets of a process as numbers, by their names in /proc/PID/status. They are equal in all
    of its threads."""
    threads = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as file:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        threads.append({name: int(value, 16) for name, value in lines.items() if name.startswith("Cap")})
    assert all(thread == threads[0] for thread in threads)
    return threads[0]


def expected(*more):
    return KEPT + (["CAP_SYS_ADMIN"] if paranoid() >= 3 else []) + list(more)


BITS = {"CAP_PERFMON": 38, "CAP_BPF": 39, "CAP_SYSLOG": 34, "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2,
        "CAP_CHECKPOINT_RESTORE": 40, "CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21, "CAP_DAC_OVERRIDE": 1, "CAP_KILL": 5,
        "CAP_SYS_RAWIO": 17, "CAP_SYS_NICE": 23}


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("out, more", [(None, []), ("file", ["CAP_DAC_OVERRIDE"])])
def test_a_session_of_root_keeps_what_its_start_record_says_and_no_more(tmp_path, out, more):
    arguments = ["-o", tmp_path / out] if out else []
    with subprocess.Popen([NHMTAP, "profile", "-a", "-e", "cpu-clock", "-F", "99", "-I", "100", *arguments],
                          stdout=subprocess.PIPE, text=True) as process:
        if out:
            while not (tmp_path / out).exists() or (tmp_path / out).read_text(encoding="utf-8").count("\n") < 2:
                pass
            start = json.loads((tmp_path / out).read_text(encoding="utf-8").splitlines()[0])
        else:
            start = json.loads(process.stdout.readline())
            process.stdout.readline()
        held = capabilities(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert start["capabilities"] == expected(*more)
    assert held["CapEff"] == held["CapPrm"] == sum(1 << BITS[name] for name in start["capabilities"])


def test_a_command_of_root_has_all_that_root_has(nhmtap, tmp_path):
    done = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "out", "--", "grep", "-E", "Cap(Prm|Eff|Bnd|Inh|Amb)", "/proc/self/status")
    before = subprocess.run(["grep", "-E", "Cap(Prm|Eff|Bnd|Inh|Amb)", "/proc/self/status"], capture_output=True,
                            text=True, check=True).stdout
    assert done.out == before
    start = json.loads((tmp_path / "out").read_text(encoding="utf-8").splitlines()[0])
    assert start["capabilities"] == expected("CAP_DAC_OVERRIDE", "CAP_KILL")


def test_registers_are_kept_writable_only_for_a_session_that_writes_them(nhmtap):
    for option, more in (([], []), (["--msr"], ["CAP_SYS_RAWIO"])):
        done = nhmtap("stat", *option, "-e", "page-faults", "--format", "json", "--", "true")
        assert json.loads(done.out.splitlines()[0])["capabilities"] == expected(*more, "CAP_KILL")


def test_a_command_keeps_its_ambient_capabilities(anyones):
    command = [*NOBODY, "--inh-caps=+perfmon,+bpf,+net_raw", "--ambient-caps=+perfmon,+bpf,+net_raw",
               anyones("plain"), "stat", "-e", "page-faults:u", "--", "grep", "CapAmb", "/proc/self/status"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if paranoid() <= 2:
        assert done.returncode == 0, done.stderr
        assert f"CapAmb:\t{1 << 38 | 1 << 39 | 1 << 13:016x}" in done.stdout


def test_files_that_are_written_are_the_groups_to_read_at_most_and_the_umask_holds(nhmtap, tmp_path):
    for umask, mode in ((0, 0o640), (0o022, 0o640), (0o077, 0o600)):
        path = tmp_path / f"{umask:o}"
        shell = ["sh", "-c", f'umask {umask:o}; exec "$@"', "sh"]
        assert nhmtap("stat", "-e", "page-faults", "-o", path, "--", "true", before=shell).status == 0
        assert path.stat().st_mode & 0o7777 == mode


def test_a_file_that_is_there_keeps_its_mode_and_its_owner(nhmtap, tmp_path):
    path = tmp_path / "out"
    path.write_text("")
    path.chmod(0o604)
    os.chown(path, 65534, 65534)
    assert nhmtap("stat", "-e", "page-faults", "-o", path, "--", "true").status == 0
    assert (path.stat().st_mode & 0o7777, path.stat().st_uid, path.stat().st_gid) == (0o604, 65534, 65534)


# --- privileges that are lent ---------------------------------------------------------------------


@pytest.fixture(scope="module", name="anyones")
def anyones_program(tmp_path_factory):
    """Copies that everybody may run, wherever the build is. One is plain, two lend privileges."""
    folder = tmp_path_factory.mktemp("lent")
    for parent in (folder, *folder.parents):
        if parent.name.startswith(("pytest-", "popen-", "lent")):
            parent.chmod(parent.stat().st_mode | 0o055)
    for name in ("plain", "capable", "setuid"):
        shutil.copy(FILE, folder / name)
        (folder / name).chmod(0o4755 if name == "setuid" else 0o755)
    subprocess.run(["setcap", LENT, folder / "capable"], check=True)
    return lambda name: folder / name


@pytest.fixture(name="secret")
def roots_secret(tmp_path):
    """A folder of root with a file, a FIFO and tables, and a folder that everybody may write to."""
    for parent in tmp_path.parents:
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(parent.stat().st_mode | 0o055)
    tmp_path.chmod(0o755)
    folder = tmp_path / "secret"
    folder.mkdir(mode=0o700)
    (folder / "file").write_text("sesame open\n")
    (folder / "file").chmod(0o600)
    shutil.copy("/bin/true", folder / "program")
    (folder / "config.json").write_text(json.dumps({"sesame": 1}))
    (folder / "list.json").write_text(json.dumps([{"EventName": "sesame", "Sesame": "open"}]))
    os.mkfifo(folder / "fifo", 0o600)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    return tmp_path


def listing(folder):
    return {path.name: (path.lstat().st_mode, path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in folder.iterdir()}


def run_as_nobody(program, arguments, **options):
    done = subprocess.run([*NOBODY, program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, cwd="/", env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"},
                          **options)
    return Result(done.returncode, done.stdout, done.stderr)


MEASURE = ["stat", "-e", "page-faults:u"]
# Each option and argument that names a file, for each command that has it.
NAMING_FILES = {
    "output": [*MEASURE, "-o", "{secret}/file", "--", "true"],
    "new output": [*MEASURE, "-o", "{secret}/new", "--", "true"],
    "output of a format": [*MEASURE, "-o", "flat={secret}/file", "--", "true"],
    "output that is appended to": [*MEASURE, "--append", "-o", "{secret}/file", "--", "true"],
    "output to a socket": [*MEASURE, "-o", "unix:{secret}/socket", "--", "true"],
    "listen": [*MEASURE, "--listen", "unix:{secret}/socket", "--", "true"],
    "control": [*MEASURE, "--control", "fifo:{secret}/fifo", "--", "true"],
    "acknowledging control": [*MEASURE, "--control", "fifo:{open}/ctl,{secret}/fifo", "--", "true"],
    "events-dir": [*MEASURE, "--events-dir", "{secret}", "--", "true"],
    "pmu-events": [*MEASURE, "--pmu-events", "{secret}/list.json", "--", "true"],
    "headers-file": [*MEASURE, "-o", "otlp=http://127.0.0.1:1/", "--headers-file", "{secret}/file", "--", "true"],
    "tls-ca-file": [*MEASURE, "-o", "otlp=https://127.0.0.1:1/", "--tls-ca-file", "{secret}/file", "--", "true"],
    "tls-cert-file": [*MEASURE, "-o", "otlp=https://127.0.0.1:1/", "--tls-cert-file", "{secret}/file", "--tls-key-file",
                      "{secret}/file", "--", "true"],
    "host-root": [*MEASURE, "--host-root", "{secret}", "--", "true"],
    "CONFIG": ["run", "{secret}/config.json"],
    "CONFIG's output": ["run", "{open}/config.json"],
    "COMMAND": [*MEASURE, "--", "{secret}/program"],
    "list events-dir": ["list", "--events-dir", "{secret}"],
    "list pmu-events": ["list", "--pmu-events", "{secret}/list.json"],
    "explain events-dir": ["explain", "page-faults", "--events-dir", "{secret}"],
    "explain pmu-events": ["explain", "page-faults", "--pmu-events", "{secret}/list.json"],
    "doctor host-root": ["doctor", "--host-root", "{secret}"],
    "doctor output": ["doctor", "-o", "{secret}/file"],
    "symbolize": ["symbolize", "{secret}/file"],
    "symbolize output": ["symbolize", "/dev/null", "-o", "{secret}/file"],
    "report": ["report", "{secret}/file"],
    "report output": ["report", "{open}/stored", "-o", "{secret}/file"],
    "show": ["show", "{secret}/file"],
    "show output": ["show", "{open}/stored", "-o", "{secret}/file"],
    "flamegraph": ["flamegraph", "{secret}/file"],
    "flamegraph output": ["flamegraph", "{open}/stored", "-o", "{secret}/file"],
}


@pytest.mark.parametrize("command", ["stat", "run", "list", "explain", "doctor", "symbolize", "flamegraph", "show", "report"])
def test_each_option_that_names_a_file_is_tried_below(nhmtap, command):
    told = nhmtap(command, "--help").out
    options = re.findall(r"--([a-z-]+) (?:FILE|DIR|PATH|PLACE|fifo:CTL.*) ", told)
    tried = {word for words in NAMING_FILES.values() if words[0] == command for word in words}
    assert {f"--{option}" for option in options} - {"--kallsyms", "--symfs", "--debug-dir"} <= \
        tried | ({"--output"} if "-o" in tried else set())


@pytest.mark.parametrize("program", ["capable", "setuid"])
@pytest.mark.parametrize("option", NAMING_FILES)
def test_no_option_opens_what_the_caller_may_not(anyones, secret, program, option):
    os.mkfifo(secret / "open" / "ctl")
    (secret / "open" / "ctl").chmod(0o666)
    (secret / "open" / "config.json").write_text(json.dumps({
        "activities": [{"name": "a", "command": "stat", "event": "page-faults:u", "pid": str(os.getpid())}],
        "outputs": [{"path": f"{secret}/secret/file"}]}))
    shutil.copy(STORED, secret / "open" / "stored")
    (secret / "open" / "stored").chmod(0o644)
    before = listing(secret / "secret")
    arguments = [a.format(secret=secret / "secret", open=secret / "open") for a in NAMING_FILES[option]]
    said = run_as_nobody(anyones(program), arguments)
    plainly = run_as_nobody(anyones("plain"), arguments)
    assert "sesame" not in said.out + said.err
    assert listing(secret / "secret") == before
    assert said.status == plainly.status != 0, (said.err, plainly.err)
    if option not in ("output to a socket", "COMMAND"):  # these may have other messages
        assert "ermission denied" in said.err or "can't be read" in said.err
    assert said.err == plainly.err


def test_symbolize_reads_no_program_that_the_caller_may_not(anyones, secret):
    """Its records name files, and its options the folders in which to look for them."""
    shutil.copy("/bin/true", secret / "secret" / "true")
    code = {"module": f"{secret}/secret/true", "offset": "0x2000"}
    stream = "".join(json.dumps({"type": kind, "schema_version": "2.0.0", "time": "2026-01-31T23:59:59.123456789Z",
                                 "run_id": "0" * 32, "seq": i, **more}) + "\n" for i, (kind, more) in enumerate([
        ("start", {"command": "profile"}), ("profile", {"ip": code, "value": 1})]))
    (secret / "open" / "stream").write_text(stream)
    for options in ([], ["--symfs", f"{secret}/secret"], ["--debug-dir", f"{secret}/secret"],
                    ["--kallsyms", f"{secret}/secret/file"]):
        arguments = ["symbolize", *options, f"{secret}/open/stream"]
        said, plainly = (run_as_nobody(anyones(name), arguments) for name in ("capable", "plain"))
        assert (said.status, said.out, said.err) == (plainly.status, plainly.out, plainly.err)


@pytest.mark.parametrize("program", ["capable", "setuid"])
def test_lent_privileges_measure_all_the_same(anyones, program):
    done = run_as_nobody(anyones(program), ["stat", "-e", "context-switches", "-a", "--duration", "0.1"])
    assert done.status == 0, done.err
    assert "CAP_DAC_OVERRIDE" not in done.one("start")["capabilities"]
    assert done.of("count")[0]["value"] > 0


def test_a_command_gets_nothing_of_what_was_lent(anyones):
    done = run_as_nobody(anyones("setuid"), [*MEASURE, "--", "grep", "-E", "Cap(Prm|Eff)|Uid", "/proc/self/status"])
    assert "Uid:\t65534\t65534\t65534\t65534" in done.out
    assert "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" in done.out


@pytest.mark.parametrize("call", ["setresgid", "setresuid"])
def test_lent_privileges_that_cannot_be_laid_aside_end_it_with_the_reason(anyones, call):
    done = subprocess.run(["strace", "-u", "nobody", "-o", "/dev/null", "-e", f"inject={call}:error=EAGAIN", anyones("setuid"),
                           *MEASURE, "--", "true"], capture_output=True, text=True, timeout=60, check=False, cwd="/",
                          env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "the user and group of who runs it can't be taken: Resource temporarily unavailable" in done.stderr
