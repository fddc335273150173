# SPDX-License-Identifier: GPL-2.0-only
"""What is put into a guest."""
import os
import shutil
import subprocess

import pytest

import guestimage
import mkboot
import nehalem

LIBRARY = "int answer(void) { return 42; }\n"
PROGRAM = "int answer(void);\nint main(void) { return answer() != 42; }\n"


def names_in(path):
    """The names in a cpio archive in newc format."""
    with open(path, "rb") as file:
        data = file.read()
    names, at = [], 0
    while data[at:at + 6] == b"070701":
        size, length = (int(data[at + 6 + 8 * field:][:8], 16) for field in (6, 11))
        names.append(data[at + 110:at + 110 + length - 1].decode())
        at += 110 + length + -(110 + length) % 4
        at += size + -size % 4
    return names


def test_a_module_ends_where_its_signature_began():
    """As the kernel's scripts/sign-file puts it: the signature, eight bytes about it, its length, and a mark."""
    signed = b"module" + b"signature" + bytes(8) + (9).to_bytes(4, "big") + b"~Module signature appended~\n"
    assert mkboot.without_signature(signed) == b"module"
    assert mkboot.without_signature(b"module") == b"module"


@pytest.mark.parametrize("way", ["$ORIGIN/lib", "a folder in /tmp", "LD_LIBRARY_PATH"])
def test_a_programs_own_library_lies_where_the_loader_finds_it_in_any_case(tmp_path, monkeypatch, way):
    folder = tmp_path / "lib"
    folder.mkdir()
    (tmp_path / "answer.c").write_text(LIBRARY)
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libanswer.so", tmp_path / "answer.c"], check=True)
    runpath = {"$ORIGIN/lib": ["-Wl,-rpath,$ORIGIN/lib"], "a folder in /tmp": [f"-Wl,-rpath,{folder}"]}.get(way, [])
    subprocess.run(["gcc", "-o", tmp_path / "program", tmp_path / "program.c", f"-L{folder}", "-lanswer", *runpath], check=True)
    if not runpath:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    archive = guestimage.Archive(str(tmp_path / "archive"))
    archive.libraries(archive.tree(str(tmp_path / "program"), "/opt/program"))
    archive.close()
    names = names_in(tmp_path / "archive")
    assert "usr/lib/libanswer.so" in names
    assert any(name.endswith("x86_64-linux-gnu/libc.so.6") for name in names)  # where it is here


def test_a_copy_of_the_folder_builds_into_itself(tmp_path, monkeypatch):
    monkeypatch.delenv("NHM_BUILD", raising=False)
    for place, built in (("copy", "copy/built"), ("project/user/machine", "project/build/machine")):
        shutil.copytree(nehalem.HERE, tmp_path / place, ignore=shutil.ignore_patterns("__pycache__"))
        said = subprocess.run([tmp_path / place / "run", "true"], capture_output=True, text=True, check=False)
        assert said.returncode == 121
        assert f"{tmp_path}/{built}/nhm-bochs is missing" in said.stderr
        script = f'. {tmp_path / place}/part; echo "$build"'
        with open(tmp_path / place / "setup", encoding="utf-8") as file:
            (tmp_path / place / "part").write_text(file.read().split("\nmkdir ")[0].replace('$(dirname "$0")', str(tmp_path / place)))
        assert os.path.abspath(subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()) \
            == f"{tmp_path}/{built}"
