# SPDX-License-Identifier: GPL-2.0-only
"""Commands that read stored records and write what they make of them: on a file system that stops to answer
(stalling_server.py), they wait as any program does, but SIGTERM ends them, which nothing does with a process that
waits there itself. When there is an answer, they go on."""
import signal
import subprocess

import pytest
from sessions import until
from stalling import Mount

COMMANDS = ["show", "show --diff", "report", "flamegraph", "symbolize"]
READS = ["lookup", "open", "read", "all"]
WRITES = ["lookup", "open", "write", "flush", "all"]


@pytest.fixture(name="records")
def fixture_records(nhmtap, tmp_path):
    path = tmp_path / "records"
    assert nhmtap("profile", "-e", "page-faults", "-c", 1, "-g", "--by", "ip", "-o", path, "--", "true").status == 0
    return path


@pytest.fixture(name="mount")
def fixture_mount(tmp_path, records):
    mount = Mount(tmp_path / "mount", records)
    yield mount
    mount.end()


def command(nhmtap, which, records, file, *options):
    """The file that stalls is the last one that is read."""
    return nhmtap.command(*which.split(), *([records] if "--diff" in which else []), file, *options)


def start(mount, operation, arguments, **options):
    """Starts a command, which waits for the file system's answer then."""
    mount.stall(operation)
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    until(lambda: mount.is_waited_for() or process.poll() is not None)
    assert process.returncode is None, process.communicate()[1]
    return process


def made(nhmtap, which, records):
    done = subprocess.run(command(nhmtap, which, records, records), capture_output=True, check=True)
    assert done.stdout
    return done.stdout


def end(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=240) == -signal.SIGTERM
    process.communicate(timeout=240)  # nobody else has its streams


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("which", COMMANDS)
def test_sigterm_ends_a_command_whose_records_stall(nhmtap, records, mount, which, operation):
    process = start(mount, operation, command(nhmtap, which, records, mount.folder / records.name))
    end(process)


@pytest.mark.parametrize("operation", ["open", "read"])
@pytest.mark.parametrize("which", COMMANDS)
def test_records_that_come_late_are_read(nhmtap, records, mount, which, operation):
    expected = made(nhmtap, which, records)
    process = start(mount, operation, command(nhmtap, which, records, mount.folder / records.name))
    mount.stall("none")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert out.replace(str(mount.folder).encode(), str(records.parent).encode()) == expected


@pytest.mark.parametrize("operation", ["open", "read"])
@pytest.mark.parametrize("which", COMMANDS)
def test_records_that_never_come_are_told(nhmtap, records, mount, which, operation):
    process = start(mount, operation, command(nhmtap, which, records, mount.folder / records.name), text=True)
    mount.kill()  # the kernel answers for the server
    err = process.communicate(timeout=240)[1]
    assert process.returncode in (1, 3) and "connect" in err, err


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("which", COMMANDS)
def test_sigterm_ends_a_command_whose_output_stalls(nhmtap, records, mount, which, operation):
    process = start(mount, operation, command(nhmtap, which, records, records, "-o", mount.folder / "new"))
    end(process)


@pytest.mark.parametrize("operation", ["open", "write", "flush"])
@pytest.mark.parametrize("which", COMMANDS)
def test_an_output_that_stalls_is_written_when_there_is_an_answer(nhmtap, records, mount, which, operation):
    expected = made(nhmtap, which, records)
    process = start(mount, operation, command(nhmtap, which, records, records, "-o", mount.folder / "new"))
    mount.stall("none")
    err = process.communicate(timeout=240)[1]
    assert process.returncode == 0, err
    assert (mount.folder / "new").read_bytes() == expected


@pytest.mark.parametrize("which", COMMANDS)
def test_an_output_that_is_lost_is_told(nhmtap, records, mount, which):
    process = start(mount, "write", command(nhmtap, which, records, records, "-o", mount.folder / "new"), text=True)
    mount.kill()
    err = process.communicate(timeout=240)[1]
    assert process.returncode == 3 and "connect" in err, err


@pytest.mark.parametrize("operation", READS)
def test_sigterm_ends_symbolize_whose_kallsyms_stalls(nhmtap, tmp_path, mount, operation):
    records = tmp_path / "of_the_kernel"
    assert nhmtap("profile", "-e", "page-faults:k", "-c", 1, "--by", "ip", "-a", "-o", records, "--", "true").status == 0
    process = start(mount, operation, nhmtap.command("symbolize", "--kallsyms", mount.folder / "records", records))
    end(process)


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("option", ["symfs", "debug-dir"])
def test_files_of_symbolize_that_stall_are_left_out(nhmtap, records, mount, option, operation):
    mount.stall(operation)
    result = nhmtap("symbolize", f"--{option}", mount.folder, records)
    assert result.status == 0
