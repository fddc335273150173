# SPDX-License-Identifier: GPL-2.0-only
"""Libraries that few runs need. Other runs start without them, and a run that needs one says so if it is
missing."""
import json
import subprocess

import pytest
from asked import free_port
from records import FILE, NHMTAP, Result, program

LIBRARIES = {"libzstd": ["-o", "missing.jsonl.zst"],
             "libcurl": ["-o", f"otlp=http://127.0.0.1:{free_port()}/"],
             "libmicrohttpd": ["--listen", f"tcp:127.0.0.1:{free_port()}"]}


def mapped(library):
    """The files of a library, from the dynamic linker's cache."""
    said = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in said.splitlines() if line.split()[0].startswith(library)]


def without(library, *arguments):
    """Runs nhmtap without a library: /dev/null is mounted over each of its files."""
    hide = "".join(f"mount --bind /dev/null {file} && " for file in mapped(library))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", hide + 'exec "$@"', "sh", NHMTAP, *arguments],
                          capture_output=True, text=True, check=False, timeout=60)
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_run_that_needs_a_library_that_is_not_there_says_so(library):
    error = without(library, "stat", "-e", "page-faults", *LIBRARIES[library], "--format", "json", "--", "true")
    assert error.status == 2
    assert library in error.err and "apt-get install" in error.err


def test_names_of_files_need_libseccomp_and_say_so_where_it_is_not_there(tmp_path):
    run = without("libseccomp", "profile", "-e", "page-faults:u", "-c", "1", "--by", "symbol", "-o", tmp_path / "out", "--",
                  program("names"), "here=50")
    assert run.status == 0, run.err
    names = Result(0, (tmp_path / "out").read_text(encoding="utf-8"), "").one("end")["names"]
    assert "libseccomp is missing" in names["failed_why"] and names["unnamed"]["failed"] >= 50


@pytest.mark.parametrize("library", [*LIBRARIES, "libseccomp"])
def test_other_runs_go_on_without_it(library):
    result = without(library, "stat", "-e", "page-faults", "--format", "json", "--", "true")
    assert result.status == 0 and result.count("page-faults") > 0
    known = json.loads(without(library, "--version", "--json").out)["libraries"]
    assert library not in known and "libbpf" in known


def test_no_run_begins_with_them():
    said = subprocess.run(["ldd", FILE], capture_output=True, text=True, check=True).stdout
    assert not [library for library in (*LIBRARIES, "libseccomp") if library in said] and "libbpf" in said
