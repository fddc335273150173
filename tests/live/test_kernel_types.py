# SPDX-License-Identifier: GPL-2.0-only
"""The extract of the kernel's BTF, by which libbpf relocates the BPF programs, against the whole as libbpf reads it."""
import os
import re

import pytest
from compiled import compiled

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
FLAVOUR = re.compile("___.*")


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    """Returns {(kind, name): [(bytes, members)]} of the extract or the whole."""
    run = compiled(tmp_path_factory.mktemp("types"), "kernel_types")

    def read(which):
        found = {}
        for line in run(which).splitlines():
            kind, name, size, *members = line.split()
            found.setdefault((kind, name), []).append((size, frozenset(members)))
        return found
    return read


def test_the_extract_has_the_types_of_the_kernel_with_their_sizes_and_offsets(types):
    extract, whole = types("extract"), types("whole")
    assert extract
    for key, kept in extract.items():
        for size, members in kept:
            assert any(size == all_size and members <= all_members for all_size, all_members in whole[key]), (key, members)


def test_the_extract_has_every_type_that_the_programs_read(types):
    """Those that vmlinux/vmlinux.h declares. Of one name, it has as many as the kernel: libbpf compares them all."""
    with open(os.path.join(ROOT, "vmlinux", "vmlinux.h"), encoding="utf-8") as file:
        declared = {(kind, FLAVOUR.sub("", name)) for kind, name in re.findall(r"^(struct|union) (\w+) \{", file.read(), re.M)}
    extract, whole = types("extract"), types("whole")
    assert len(declared) > 10
    assert {key: len(extract.get(key, ())) for key in declared} == {key: len(whole.get(key, ())) for key in declared}
