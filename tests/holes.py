# SPDX-License-Identifier: GPL-2.0-only
"""What the maps of the kernel side consist of, by their BTF: pure/holes.c."""
import collections
import glob
import os

from compiled import compiled

Part = collections.namedtuple("Part", "what object map side struct member offset size")


def told(folder):
    """Members and holes of all maps' structs; sizes in bytes, offsets from the struct's beginning."""
    objects = glob.glob(os.path.join(os.environ["NHMTAP_BUILD"], "bpf", "*.bpf.o"))
    lines = compiled(folder, "holes", libraries=("-lbpf",))("\n".join(sorted(objects)) + "\n").splitlines()
    return [Part(*words[:-2], *map(int, words[-2:])) for words in map(str.split, lines)]
