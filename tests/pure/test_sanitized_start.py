# SPDX-License-Identifier: GPL-2.0-only
"""What a build under sanitizers spares at its start and in its search for leaks: user/base/sanitized.c."""
import os
import subprocess

import pytest

from compiled import HERE, SANITIZED, USER


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("sanitized") / "sanitized_start"
    # UBSan would find the reads beyond first, and end the program.
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-g", *SANITIZED,
                    "-fno-sanitize=bounds,object-size,pointer-overflow", "-I", USER, "-o", path,
                    os.path.join(HERE, "pure", "sanitized_start.c"), os.path.join(USER, "base", "sanitized.c")], check=True)

    def run(what, **options):
        asan = ":".join(f"{name}={value}" for name, value in options.items())
        return subprocess.run([path, what], env=os.environ | {"ASAN_OPTIONS": asan}, capture_output=True, text=True, check=False)
    run.path = path
    return run


@pytest.mark.parametrize("what, says", [
    ("lose", "detected memory leaks"), ("read beyond an array", "global-buffer-overflow"),
    ("read beyond a text", "global-buffer-overflow"), ("count too far", "signed integer overflow")])
def test_every_fault_is_still_found(run, what, says):
    done = run(what)
    assert done.returncode and says in done.stderr


@pytest.mark.parametrize("what", ["keep", "keep beside a text", "let a library keep"])
def test_what_still_has_an_owner_is_no_leak(run, what):
    done = run(what)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_program_s_variables_are_guarded_and_those_of_ubsan_are_not(run):
    """By the runtime's own list."""
    said = run("nothing", report_globals=2).stderr
    assert "name=row " in said and "Lubsan" not in said


def test_the_search_for_leaks_reads_the_program_s_variables_and_not_those_of_ubsan(run):
    """Places and sizes by binutils. Most of .data are UBSan's variables and what gcc notes about variables; what it has
    besides are few small variables of the program and of the C library."""
    read = [[int(end, 16) for end in line.split()] for line in run("show segments").stdout.splitlines()]
    symbols = {name: int(at, 16) for at, _, name in
               map(str.split, subprocess.run(["nm", "--defined-only", run.path], capture_output=True, text=True, check=True).stdout.splitlines())}
    for name in ("row", "kept", "kept_beside", "text", "four", "most", "__bss_start"):
        assert any(begin <= symbols[name] < end for begin, end in read), name
    sections = subprocess.run(["readelf", "-SW", run.path], capture_output=True, text=True, check=True).stdout
    _, _, data, _, size = sections[sections.index(" .data "):].split()[:5]
    data, size = int(data, 16), int(size, 16)
    assert sum(max(0, min(end, data + size) - max(begin, data)) for begin, end in read) < size / 4
