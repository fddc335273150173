# SPDX-License-Identifier: GPL-2.0-only
"""The Python package in the guest: blocks of a process's own code, whose instructions are known."""
import json
import os
import shutil
import subprocess
import sys
import sysconfig

import nehalem
import pytest
from guests import tool

PACKAGE = os.path.abspath(os.path.join(nehalem.HERE, "..", "..", "user", "python"))
sys.path.insert(0, PACKAGE)
from nhmtap import Measured, baseline  # noqa: E402, the folder is on the path only now

LIBRARY = sysconfig.get_path("stdlib") + "/"

# burn(n) is 2 n + 2 instructions.
BURN = """
	.globl burn
burn:	mov %rdi, %rcx
1:	dec %rcx
	jnz 1b
	ret
	.section .note.GNU-stack, "", @progbits
"""

INSIDE = """
import ctypes, json, sys
sys.path.insert(0, "/opt/python")
import nhmtap

burn = ctypes.CDLL("/opt/burn.so").burn
burn.argtypes = [ctypes.c_long]

def block(n, *names):
    with nhmtap.measure(*names) as m:
        burn(n)
    return {name: [m[name].low, m[name].value, m[name].high] for name in names}

for _ in range(2):  # the first takes Python's own paths for the first time
    blocks = [block(n, "instructions:u", "ipc") for n in (100000, 200000, 300000)]
empty = nhmtap.measure("instructions:u", "ipc").empty_block()
# More than the four general counters, for the kernel to share among them.
many = block(20000000, "r00c0:u", "r01c0:u", "r00c4:u", "r003c:u", "r010b:u", "r020b:u", "r01c4:u")
# A baseline, the same again, and two in a hundred more.
repeats = [[block(n, "instructions:u")["instructions:u"][1] for _ in range(5)]
           for n in (300000, 300000, 306000)]
print(json.dumps([[b["instructions:u"][1] for b in blocks], [b["ipc"] for b in blocks],
                  empty["instructions:u"].value, many["r00c0:u"], repeats]))
"""


def python(folder):
    """The parts of Python that the guest needs: the program, the package, and the files of its library
    that the package imports. All are compiled, because compiling in the guest would take a minute."""
    script = "import ctypes, sys; sys.path.insert(0, sys.argv[1]); import nhmtap, nhmtap.launcher\n" \
             "import encodings.idna, encodings.latin_1\n" \
             "print(*[m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)])"
    files = subprocess.run([sys.executable, "-B", "-S", "-c", script, PACKAGE], check=True,
                           capture_output=True, text=True).stdout.split()
    library, package = folder / "library", folder / "package"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in [file for file in files if file.startswith(LIBRARY)]:
        target = library / file[len(LIBRARY):]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    # Files have no dates in the guest, so Python must not compare them. This process keeps what it compiles elsewhere
    # (sys.pycache_prefix), where the guest would not find it.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder], check=True)
    assert list(package.rglob("*.pyc"))
    return (f"{library}:{LIBRARY[:-1]}", f"{package}:/opt/python",
            f"{os.path.realpath(sys.executable)}:/usr/bin/python3")


@pytest.fixture
def guest(tmp_path):
    (tmp_path / "burn.S").write_text(BURN)
    (tmp_path / "inside.py").write_text(INSIDE)
    subprocess.run(["gcc", "-shared", "-o", tmp_path / "burn.so", tmp_path / "burn.S"], check=True)
    add = (*python(tmp_path / "python"), str(tmp_path / "burn.so"), str(tmp_path / "inside.py"), tool())
    with nehalem.Guest(nehalem.Machine(add=add, rounded=True)) as machine:
        yield machine


def test_instructions_of_a_block_are_counted(guest):
    result = guest.run("PYTHONDONTWRITEBYTECODE=1 NHMTAP=/opt/nhmtap python3 -S /opt/inside.py",
                       paranoid=-1, timeout=900)
    assert result.status == 0, str(result)
    counts, ratios, empty, (low, _, high), repeats = json.loads(result.stdout)
    for n, count in zip((100000, 200000, 300000), counts):
        # Besides the function, the block has Python's call of it and the instructions of an empty
        # block.
        assert 2 * n + 2 <= count <= 2 * n + 2 + empty + 10000
    assert counts[2] - counts[1] == pytest.approx(200000, rel=0.001)
    # Every other instruction is a taken branch, and hardly anything stalls.
    assert all(0.5 < value <= 1.001 for _, value, _ in ratios)
    # The true count is known except for Python's part, a thousandth; the estimate has a bound.
    assert low < 40000002 * 1.001 and high > 40000002
    assert low < high
    before, again, more = ([Measured("instructions:u", {}, run) for run in runs] for runs in repeats)
    limit = baseline.Limit.parse("instructions:u:1%")
    assert not limit.broken("instructions:u", baseline.compare(again, before))
    assert limit.broken("instructions:u", baseline.compare(more, before))
