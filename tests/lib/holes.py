# SPDX-License-Identifier: GPL-2.0-only
"""The layout of the BPF maps by their BTF, as pure/holes.c prints it."""
import collections
import glob
import os

from compiled import compiled

Part = collections.namedtuple("Part", "what object map side struct member offset size")


def told(folder):
    """Returns the members and holes of the structs of all maps. Sizes and offsets are in bytes. Builds with smaller tables,
    such as mem-quarter, differ only in the lengths of arrays."""
    objects = glob.glob(os.path.join(os.environ["NHMTAP_BUILD"], "bpf", "*.bpf.o"))
    objects = [path for path in objects if "-" not in os.path.basename(path)]
    lines = compiled(folder, "holes")("\n".join(sorted(objects)) + "\n").splitlines()
    return [Part(*words[:-2], *map(int, words[-2:])) for words in map(str.split, lines)]
