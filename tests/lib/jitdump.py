# SPDX-License-Identifier: GPL-2.0-only
"""A program that makes code at run time and dumps it in a jitdump file. Its arguments: the file, what is wrong with it,
and how often each of the two functions is to fault. It prints its pid and the function's addresses."""
import ctypes
import mmap
import os
import struct
import sys

TOUCH = bytes.fromhex("c60701c3")  # movb $1,(%rdi); ret
PAGE = mmap.PAGESIZE


def header(magic=0x4A695444):
    return struct.pack("<IIIIIIQQ", magic, 1, 40, 62, 0, os.getpid(), 0, 0)


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 0) + body


def load(address, index, name):
    return record(0, struct.pack("<IIQQQQ", os.getpid(), os.getpid(), address, address, len(TOUCH), index) +
                  name.encode() + b"\0" + TOUCH)


def move(index, source, target):
    return record(1, struct.pack("<IIQQQQQ", os.getpid(), os.getpid(), target, source, target, len(TOUCH), index))


def debug(address, *rows):
    """Lines of the code whose record follows: (offset, line, file), the file "\\xff" as in the row before."""
    return record(2, struct.pack("<QQ", address, len(rows)) + b"".join(
        struct.pack("<QII", address + offset, line, 0) + file + b"\0" for offset, line, file in rows))


def dump(first, second):
    """`early` is loaded at the first address and moved to the second one; `late` takes its place."""
    return [header(), debug(first, (0, 7, b"/src/early.js"), (3, 8, b"\xff")), load(first, 0, "early"),
            move(0, first, second), debug(first, (0, 60, b"/src/late.js"), (0, 70, b"\xff"), (3, 71, b"/src/other.js")),
            load(first, 1, "late")]


def main():
    path, wrong, late, early = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    code = mmap.mmap(-1, 2 * PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    code[0:4] = code[PAGE:PAGE + 4] = TOUCH
    parts = dump(at, at + PAGE)
    if wrong == "order":
        parts[0] = header(0x4454694A)
    elif wrong == "empty":
        parts = [parts[0], record(0, b"")]
    written = b"".join(parts)
    path = os.path.join(path, f"jit-{os.getpid()}.dump")
    with open(path, "wb") as file:
        file.write(written[:20] if wrong == "short" else written + parts[-1][:30])  # the last one is being written
    with open(path, "rb") as file:
        mark = mmap.mmap(file.fileno(), 1 if wrong == "short" else PAGE if len(written) > PAGE else len(written),
                         prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    if wrong == "a map in the way":
        name = f"/tmp/perf-{os.getpid()}.map"
        with open(name, "w", encoding="ascii") as file:
            file.write(f"{at:x} {2 * PAGE:x} of_another_user\n")
        os.chown(name, 65534, 65534)
    for function, times in ((at, late), (at + PAGE, early)):
        pages = mmap.mmap(-1, (times + 1) * PAGE, flags=mmap.MAP_PRIVATE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        for i in range(times):
            call(first + i * PAGE)
    del mark


if __name__ == "__main__":
    main()
