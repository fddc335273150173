# SPDX-License-Identifier: GPL-2.0-only
"""Writes programs with as many symbols as a test wants, faster than a linker does."""
import struct

BASE, SLOT = 0x400000, 16
TEXT = 0x1000  # where the code begins in the file
TOUCH = b"\xfe\x07\xc3"  # incb (%rdi); ret


def symbol(name, address, size, kind=2, bind=1, section=1):
    """An entry of a symbol table: kind 2 is a function, 0 a label, 1 data; bind 1 is global, 0 local, 2 weak."""
    return struct.pack("<IBBHQQ", name, bind << 4 | kind, 0, section, address, size)


def slot(number):
    """The address of a function."""
    return BASE + TEXT + SLOT * (number + 8)


def write(path, slots, table, strings, calls=()):
    """
    Writes a static program with `slots` functions of SLOT bytes, of which it calls those in `calls`, each with a page of its
    own to be written to. `table` and `strings` are the bytes of its symbols and their names.
    """
    slots = max(slots, 4 * len(calls) // SLOT + 1)
    code = bytearray(TOUCH.ljust(SLOT, b"\xcc") * slots)
    data = BASE + (TEXT + SLOT * 8 + len(code) + 0x1fff) // 0x1000 * 0x1000
    calls_at = slot(0) + len(code)
    # mov $data, %rdi; mov $calls_at, %rbx; mov $nr, %r12d; 1: mov (%rbx), %eax; call *%rax; add $4096, %rdi; add $4, %rbx;
    # dec %r12d; jnz 1b; mov $60, %eax; xor %edi, %edi; syscall
    start = (b"\x48\xc7\xc7" + struct.pack("<I", data) + b"\x48\xc7\xc3" + struct.pack("<I", calls_at)
             + b"\x41\xbc" + struct.pack("<I", len(calls)) + b"\x8b\x03\xff\xd0\x48\x81\xc7\0\x10\0\0\x48\x83\xc3\x04"
             + b"\x41\xff\xcc\x75\xec\xb8\x3c\0\0\0\x31\xff\x0f\x05").ljust(SLOT * 8, b"\xcc")
    text = start + bytes(code) + b"".join(struct.pack("<I", slot(number)) for number in calls)
    data = BASE + (TEXT + len(text) + 0xfff) // 0x1000 * 0x1000
    text = text[:3] + struct.pack("<I", data) + text[7:]
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    at, sections = TEXT + len(text), [(0,) * 10]
    for name, kind, flags, address, content, link, entry in (
            (b".text", 1, 6, BASE + TEXT, text, 0, 0), (b".symtab", 2, 0, 0, table, 3, 24), (b".strtab", 3, 0, 0, strings, 0, 0),
            (b".shstrtab", 3, 0, 0, names, 0, 0)):
        offset = TEXT if name == b".text" else at
        sections.append((names.index(name), kind, flags, address, offset, len(content), link, 1, 1, entry))
        at = offset + len(content)
    header = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + TEXT, 64, at, 0, 64, 56, 2, 64, 5, 4)
    segments = (struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, TEXT + len(text), TEXT + len(text), 0x1000)
                + struct.pack("<IIQQQQQQ", 1, 6, 0, data, data, 0, 0x1000 * max(len(calls), 1), 0x1000))
    with open(path, "wb") as file:
        file.write((header + segments).ljust(TEXT, b"\0") + text)
        file.write(table)
        file.write(strings)
        file.write(names)
        for section in sections:
            file.write(struct.pack("<IIQQQQIIQQ", *section))
    path.chmod(0o755)
