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


def leb(number):
    """A number as DWARF's SLEB128, which is an ULEB128 too if the number is not negative."""
    out = bytearray()
    while not -0x40 <= number < 0x40:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number & 0x7f])


def line(number):
    """The source line of a function in dwarf()."""
    return number * 7919 % 50000 + 1


# A compile unit: name, directory, beginning and size of its code, line table; a function: name, beginning, size, line; a variable
# in it, with as long a name as in other programs.
ABBREVIATIONS = (b"\1\x11\1\x03\x08\x1b\x08\x11\x01\x12\x07\x10\x17\0\0" b"\2\x2e\1\x03\x0e\x11\x01\x12\x06\x3b\x05\0\0"
                 b"\3\x34\0\x03\x08\0\0" b"\0")
# minimum_instruction_length, maximum_operations_per_instruction, default_is_stmt, line_base, line_range, opcode_base, their operands
LINE_HEADER = b"\1\1\1\xfb\x0e\x0d\0\1\1\1\1\0\0\0\1\0\0\1"


def dwarf(slots, name, functions_of_a_unit, variables):
    """
    DWARF 4 of a program's functions, as sections. `name` is a format of their names. Function i is in unit_U.c of /built,
    where U counts units, at line(i). Each has as many variables.
    """
    info, lines, texts = bytearray(), bytearray(), bytearray()
    inside = b"".join(b"\3a_variable_with_a_name_as_long_%d\0" % i for i in range(variables)) + b"\0"
    for unit, first in enumerate(range(0, slots, functions_of_a_unit)):
        numbers = range(first, min(slots, first + functions_of_a_unit))
        file = b"unit_%d.c\0" % unit
        entries = bytearray(b"\1" + file + b"/built\0" + struct.pack("<QQI", slot(first), SLOT * len(numbers), len(lines)))
        # DW_LNE_set_address; then for each function: DW_LNS_advance_line, DW_LNS_copy, DW_LNS_advance_pc
        rows, at = bytearray(b"\0\x09\2" + struct.pack("<Q", slot(first))), 1
        for number in numbers:
            entries += b"\2" + struct.pack("<IQIH", len(texts), slot(number), SLOT, line(number)) + inside
            texts += name % number + b"\0"
            rows += b"\3" + leb(line(number) - at) + b"\1\2" + leb(SLOT)
            at = line(number)
        rows += b"\0\1\1"
        header = LINE_HEADER + b"\0" + file + b"\0\0\0" + b"\0"
        table = struct.pack("<HI", 4, len(header)) + header + rows
        lines += struct.pack("<I", len(table)) + table
        entries += b"\0"
        info += struct.pack("<IHIB", 7 + len(entries), 4, 0, 8) + entries
    return {".debug_info": bytes(info), ".debug_abbrev": ABBREVIATIONS, ".debug_line": bytes(lines), ".debug_str": bytes(texts)}


def write(path, slots, table, strings, calls=(), debug=None):
    """
    Writes a static program with `slots` functions of SLOT bytes, of which it calls those in `calls`, each with a page of its
    own to be written to. `table` and `strings` are the bytes of its symbols and their names, `debug` further sections.
    """
    debug = debug or {}
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
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0" + b"".join(name.encode() + b"\0" for name in debug)
    at, sections = TEXT + len(text), [(0,) * 10]
    for name, kind, flags, address, content, link, entry in (
            (b".text", 1, 6, BASE + TEXT, text, 0, 0), (b".symtab", 2, 0, 0, table, 3, 24), (b".strtab", 3, 0, 0, strings, 0, 0),
            (b".shstrtab", 3, 0, 0, names, 0, 0),
            *((name.encode(), 1, 0, 0, content, 0, 0) for name, content in debug.items())):
        offset = TEXT if name == b".text" else at
        sections.append((names.index(name), kind, flags, address, offset, len(content), link, 1, 1, entry))
        at = offset + len(content)
    header = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + TEXT, 64, at, 0, 64, 56, 2, 64, 5 + len(debug), 4)
    segments = (struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, TEXT + len(text), TEXT + len(text), 0x1000)
                + struct.pack("<IIQQQQQQ", 1, 6, 0, data, data, 0, 0x1000 * max(len(calls), 1), 0x1000))
    with open(path, "wb") as file:
        file.write((header + segments).ljust(TEXT, b"\0") + text)
        file.write(table)
        file.write(strings)
        file.write(names)
        for content in debug.values():
            file.write(content)
        for section in sections:
            file.write(struct.pack("<IIQQQQIIQQ", *section))
    path.chmod(0o755)
