# SPDX-License-Identifier: GPL-2.0-only
"""A reader of ClickHouse's format Native, by https://clickhouse.com/docs/reference/interfaces/specs/NativeFormat, for
the types that nhmtap writes."""
import io
import struct

FIXED = {"UInt64": "Q", "UInt32": "I", "UInt8": "B", "Float64": "d"}


def take(stream, size):
    piece = stream.read(size)
    if len(piece) < size:
        raise EOFError("a block is cut")
    return piece


def varint(stream):
    number = shift = 0
    while True:
        byte, = take(stream, 1)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
        shift += 7


def text(stream):
    return take(stream, varint(stream)).decode()  # all of them are UTF-8


def column(stream, rows):
    """Returns the column's name, its type, and its values."""
    name, kind = text(stream), text(stream)
    if kind == "String":
        return name, kind, [text(stream) for _ in range(rows)]
    form = f"<{rows}{FIXED[kind]}"
    return name, kind, list(struct.unpack(form, take(stream, struct.calcsize(form))))


def blocks(content):
    """Yields each block as {name: (type, values)}, in the order of the columns, and its number of rows."""
    stream = io.BytesIO(content)
    while stream.tell() < len(content):
        nr, rows = varint(stream), varint(stream)
        columns = [column(stream, rows) for _ in range(nr)]
        assert len({name for name, _, _ in columns}) == nr, "two columns have one name"
        yield {name: (kind, values) for name, kind, values in columns}, rows


def rows(content):
    """All rows, as {name: value}."""
    for columns, nr in blocks(content):
        for i in range(nr):
            yield {name: values[i] for name, (_, values) in columns.items()}
