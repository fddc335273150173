# SPDX-License-Identifier: GPL-2.0-only
"""Names of addresses of a real run, and of this kernel, against perf script and kallsyms."""
import re

import pytest

from naming import Names, functions, run


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A perf.data with a sample for each first touch of a page by clang."""
    folder = tmp_path_factory.mktemp("perf")
    (folder / "x.cc").write_text("#include <regex>\n#include <map>\nint f(const char *s) { std::regex r(s);"
                                 "std::map<int, int> m; return m[2] + std::regex_match(s, r); }\n")
    run("perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-e", "page-faults:u", "-c", "1", "-o", folder / "perf.data",
        "clang++", "-O0", "-c", "-o", "/dev/null", folder / "x.cc")
    return folder / "perf.data"


def mapped(data):
    """The files that were mapped: (begin, size, offset, path)."""
    said = run("perf", "script", "-i", data, "--show-mmap-events")
    return [(int(begin, 16), int(size, 16), int(offset, 16), path) for begin, size, offset, path in re.findall(
        r"MMAP2 .*: \[0x(\w+)\(0x(\w+)\) @ (?:0x)?(\w+) .*\]: r-xp (/.*)", said)]


def test_a_thousand_addresses_of_a_run_are_named_as_perf_script_does(names_program, recorded):
    maps = mapped(recorded)
    lines = sorted(set(run("perf", "script", "-i", recorded, "--no-demangle", "-F", "ip,sym,symoff,dso").splitlines()))
    asked = []
    for line in lines:
        match = re.fullmatch(r"\s*(\w+) (\S+?)(?:\+0x(\w+))? \((/.*)\)", line)
        if not match:
            continue
        address = int(match[1], 16)
        begin, _, offset, path = next(m for m in reversed(maps) if m[0] <= address < m[0] + m[1])
        asked.append((path, address - begin + offset, match[2].split("@@")[0], int(match[3] or "0", 16)))
    plain = run("c++filt", input="\n".join(symbol for _, _, symbol, _ in asked)).splitlines()
    engine = Names(names_program)
    same = 0
    for (path, offset, _, in_symbol), symbol in zip(asked, plain):
        name = engine.file(path, offset)
        ours = [(frame["symbol"], frame["offset"]) for frame in name["frames"]]
        same += ours == ([(symbol, in_symbol)] if symbol != "[unknown]" else []) or \
            (bool(ours) and ours[0][0].endswith("…") and symbol.startswith(ours[0][0][:-1]))
    engine.close()
    assert len(asked) >= 1000
    assert same >= 0.99 * len(asked)


def test_every_function_of_this_kernel_has_one_of_its_names(names_program):
    names = {}
    with open("/proc/kallsyms", encoding="utf-8") as file:
        for line in file:
            address, kind, name, *module = line.split()
            # Other tests' BPF programs and trampolines may change before the engine reads the file.
            if kind in "tTwW" and not (module and module[0].startswith(("[bpf]", "[__builtin__"))):
                names.setdefault(int(address, 16), set()).add((name, module[0] if module else "[kernel]"))
    assert len(names) > 1000, "the kernel hides its addresses"
    chosen = sorted(names)[:: len(names) // 1000]
    engine = Names(names_program)
    for address in chosen:
        name = engine.kernel(address)
        assert (functions(name)[0], name["module"]) in names[address]
    engine.close()
