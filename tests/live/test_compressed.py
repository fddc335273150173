# SPDX-License-Identifier: GPL-2.0-only
"""-o FILE.zst: records compressed with zstd, in frames of whole records."""
import shutil
import signal
import subprocess

import pytest
from puppet import Puppet
from records import NHMTAP, Result, parse, program
from sessions import until
from stalling import Mount

FAULTS = ["-e", "page-faults:u", "-c", "1"]
N = 20000


def unpacked(path):
    """What zstd itself makes of a file; of one that was cut, up to there."""
    return subprocess.run(["zstd", "-dcq", path], capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same run, compressed and not."""
    folder = tmp_path_factory.mktemp("both")
    packed, plain = folder / "x.jsonl.zst", folder / "x.jsonl"
    subprocess.run([NHMTAP, "stream", *FAULTS, "--fields", "addr,comm", "-o", packed, "-o", plain, "--", program("pages"), str(N)],
                   check=True, capture_output=True)
    return packed, plain


def alike(text):
    """Records without what differs from output to output."""
    return [{**r, "time": None, "run_id": None} for r in parse(text) if r["type"] != "end"]


def test_the_records_are_those_of_a_plain_file(both):
    packed, plain = both
    subprocess.run(["zstd", "-tq", packed], check=True)
    assert alike(unpacked(packed)) == alike(plain.read_text())
    assert len(alike(unpacked(packed))) > N


def test_the_file_is_much_smaller(both):
    packed, plain = both
    assert 8 * packed.stat().st_size < plain.stat().st_size


def frames(content):
    """Where frames begin: at the magic number. It is not likely in their contents."""
    return [i for i in range(len(content)) if content.startswith(b"\x28\xb5\x2f\xfd", i)]


@pytest.mark.parametrize("command", [["symbolize"], ["symbolize", "-o", "out.jsonl"]], ids=" ".join)
def test_a_file_that_was_cut_is_readable_up_to_there(both, tmp_path, command):
    packed, plain = both
    content = packed.read_bytes()
    begins = frames(content)
    assert len(begins) > 2, "a frame has a MiB of records"
    cut = tmp_path / "cut.jsonl.zst"
    cut.write_bytes(content[:begins[-1] + 20])
    done = subprocess.run([NHMTAP, *command, cut], capture_output=True, text=True, check=False, cwd=tmp_path)
    said = (tmp_path / "out.jsonl").read_text() if len(command) > 1 else done.stdout
    records = parse(said)
    whole = parse(plain.read_text())
    assert 0 < len(records) < len(whole)
    assert [r["seq"] for r in records] == list(range(len(records))), "the last record is whole"


def test_each_view_reads_it(nhmtap, tmp_path):
    packed, plain = tmp_path / "p.jsonl.zst", tmp_path / "p.jsonl"
    nhmtap("profile", *FAULTS, "-g", "-o", packed, "-o", plain, "--", program("pages"), 200)
    for command in (["show"], ["flamegraph"], ["symbolize"]):
        of_packed, of_plain = (subprocess.run([NHMTAP, *command, path], capture_output=True, text=True, check=False, cwd=tmp_path)
                               for path in (packed, plain))
        assert of_packed.returncode == of_plain.returncode == 0, (command, of_packed.stderr)
        assert len(of_packed.stdout.splitlines()) == len(of_plain.stdout.splitlines()) > 0
    for path, page in ((packed, "a.html"), (plain, "b.html")):
        subprocess.run([NHMTAP, "report", path, "-o", tmp_path / page], check=True)
    assert (tmp_path / "a.html").stat().st_size > 1000


def test_a_damaged_file_is_told(tmp_path, both):
    content = bytearray(both[0].read_bytes())
    middle = frames(content)[1] + 1000
    content[middle:middle + 4] = bytes(byte ^ 0xff for byte in content[middle:middle + 4])
    damaged = tmp_path / "damaged.jsonl.zst"
    damaged.write_bytes(content)
    done = subprocess.run([NHMTAP, "symbolize", damaged], capture_output=True, text=True, check=False)
    assert done.returncode and "Bad message" in done.stderr, done.stderr


def test_records_are_in_the_file_soon(nhmtap, tmp_path):
    out = tmp_path / "x.jsonl.zst"
    with Puppet() as puppet:
        process = nhmtap.attach("stream", *FAULTS, "--fields", "addr", "-o", "-", "-o", out, "-p", puppet.pid)
        puppet.do("faults=10")
        until(lambda: unpacked(out).count('"sample"') >= 10)
        nhmtap.interrupt(process)
    assert Result(0, unpacked(out), "").of("end")


def test_a_file_is_begun_anew_or_appended_to(nhmtap, tmp_path):
    out = tmp_path / "x.jsonl.zst"
    for options, ends in (([], 1), ([], 1), (["--append"], 2)):
        nhmtap("stat", "-e", "page-faults", *options, "-o", out, "--", "true")
        assert unpacked(out).count('"type":"end"') == ends


@pytest.mark.parametrize("packs", [True, False], ids=["packed", "plain"])
def test_what_is_appended_to_a_file_that_was_cut_follows_its_last_whole_record(nhmtap, both, tmp_path, packs):
    content = both[0 if packs else 1].read_bytes()
    cut = tmp_path / ("cut.jsonl.zst" if packs else "cut.jsonl")
    ends = [*frames(content), len(content)] if packs else [i + 1 for i in range(len(content)) if content[i] == 10]
    for at in (1, 3, 4, 8, 500, ends[1] - 1, ends[1], ends[1] + 1, ends[1] + 3, ends[1] + 30, len(content) - 1, len(content)):
        whole = max(end for end in [0, *ends] if end <= at)
        cut.write_bytes(content[:whole])
        kept = (unpacked(cut) if packs else cut.read_text()) if whole else ""
        cut.write_bytes(content[:at])
        assert nhmtap("stat", "-e", "page-faults", "--append", "-o", cut, "--", "true").status == 0
        text = unpacked(cut) if packs else cut.read_text()
        assert text.startswith(kept)
        assert [r["type"] for r in parse(text[len(kept):])] == ["start", "count", "end"], at


@pytest.mark.parametrize("name", ["notes", "notes.zst"])
@pytest.mark.parametrize("content", [b"", b"my notes", b'{"x": 1}', b"[{", b"(\xb5/\xfe"])
def test_what_no_run_has_written_is_kept_where_a_run_appends(nhmtap, tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    nhmtap("stat", "-e", "page-faults", "--append", "-o", path, "--", "true")
    assert path.read_bytes().startswith(content) and path.stat().st_size > len(content)


def test_a_file_is_opened_again_after_a_hangup(nhmtap, tmp_path):
    out, old = tmp_path / "x.jsonl.zst", tmp_path / "old.zst"
    with Puppet() as puppet:
        process = nhmtap.attach("stream", *FAULTS, "--fields", "addr", "-o", "-", "-o", out, "-p", puppet.pid)
        puppet.do("faults=10")
        until(lambda: unpacked(out).count('"sample"') >= 10)
        shutil.move(out, old)
        process.send_signal(signal.SIGHUP)
        until(out.exists)
        puppet.do("faults=10")
        until(lambda: unpacked(out).count('"sample"') >= 10)
        nhmtap.interrupt(process)
    subprocess.run(["zstd", "-tq", old, out], check=True)
    numbers = [r["seq"] for r in parse(unpacked(old) + unpacked(out))]
    assert numbers == list(range(len(numbers)))


def test_a_full_disk_is_told(nhmtap, tmp_path):
    done = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "link.zst", "--", "true")
    assert done.status == 0
    (tmp_path / "full.zst").symlink_to("/dev/full")
    done = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "full.zst", "--", "true")
    assert done.status == 3 and "No space left" in done.err


def test_a_file_that_fails_is_told_and_is_no_reader_that_has_gone(nhmtap, tmp_path):
    """The kernel lets all calls fail on a file system whose server has ended."""
    mount = Mount(tmp_path / "mount")
    try:
        out = mount.folder / "x.zst"
        process = nhmtap.start("stat", "-e", "page-faults", "-a", "-I", "50", "-o", out)
        until(lambda: out.exists() and out.stat().st_size)
        mount.kill()
        _, said = process.communicate(timeout=30)
    finally:
        mount.end()
    assert process.returncode == 3 and f"writing to {out}: " in said and "the records end before the run does" in said


def test_documents_are_not_compressed(nhmtap, tmp_path):
    error = nhmtap("stat", "-e", "page-faults", "-I", "100", "-o", tmp_path / "x-%t.zst", "--", "true")
    assert error.status == 1 and "compressed" in error.err


@pytest.mark.parametrize("form", ["pprof", "otlp-profiles", "clickhouse"])
def test_a_format_that_is_no_lines_is_whole_as_well(nhmtap, tmp_path, form):
    """What came behind the last line feed was left out. The two outputs differ in random ids only."""
    packed, plain = tmp_path / "x.zst", tmp_path / "x"
    result = nhmtap("profile", *FAULTS, "--by", "stack", "-o", f"{form}={packed}", "-o", f"{form}={plain}", "--", "true")
    assert result.status == 0
    whole = subprocess.run(["zstd", "-dcq", packed], capture_output=True, check=True).stdout
    assert len(whole) == plain.stat().st_size and whole[:1] == plain.read_bytes()[:1] and whole[-1:] == plain.read_bytes()[-1:]
