# SPDX-License-Identifier: GPL-2.0-only
"""A process that publishes an OpenTelemetry process context (OTEP 4719), step by step. As a program it does what
the lines of its standard input say, and answers each with a line."""
import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import sys
import time

import protos

FIELDS = """
syntax = "proto3";
message AnyValue {
  oneof value {
    string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
    ArrayValue array_value = 5; bytes bytes_value = 7;
  }
}
message ArrayValue { repeated AnyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message ProcessContext { Resource resource = 1; repeated KeyValue attributes = 2; }
"""
KINDS = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value", bytes: "bytes_value"}


def add(attributes, values):
    for name, value in values.items():
        added = attributes.add(key=name)
        if isinstance(value, list):
            added.value.array_value.values.add(string_value=value[0])
        else:
            setattr(added.value, KINDS[type(value)], value)


def context(attributes, further=None):
    made = protos.message("ProcessContext", FIELDS)()
    add(made.resource.attributes, attributes)
    add(made.attributes, further or {})
    return made.SerializeToString()


def bare(attributes):
    """The resource itself, as the first publishers had it."""
    return context(attributes)[2:] if len(context(attributes)) < 130 else None


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Publisher:
    """Use it in a with statement, which ends it."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def do(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def publish(self, payload, version=2, name="OTEL_CTX", size=None, published=None, at=0, signature="OTEL_CTX"):
        """`at`: where the header says that the payload is, if not 0."""
        self.do("publish", name, signature, version, len(payload) if size is None else size,
                boot_ns() if published is None else published, at, payload.hex() or "-")

    def change(self, payload):
        self.do("change", payload.hex())

    def withhold(self, payload):
        """Publishes a context whose payload is on a page that comes with fill(): until then, its readers wait."""
        self.do("withhold")
        self.publish(payload, at=WITHHELD)

    def fill(self, payload):
        self.do("fill", payload.hex())


WITHHELD = 0x10000000  # the address of that page
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_COPY = 0xc018aa3f, 0xc020aa00, 0xc028aa03  # linux/userfaultfd.h
USERFAULTFD, MISSING = 323, 1


class Withheld:
    """A page that a userfaultfd is to fill."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
        assert libc.mmap(WITHHELD, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == WITHHELD
        self.fd = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        fcntl.ioctl(self.fd, UFFDIO_API, struct.pack("<3Q", 0xaa, 0, 0))
        fcntl.ioctl(self.fd, UFFDIO_REGISTER, struct.pack("<4Q", WITHHELD, mmap.PAGESIZE, MISSING, 0))

    def fill(self, data):
        page = ctypes.create_string_buffer(data, mmap.PAGESIZE)
        fcntl.ioctl(self.fd, UFFDIO_COPY, struct.pack("<5Q", WITHHELD, ctypes.addressof(page), mmap.PAGESIZE, 0, 0))


def main():
    where = withheld = None
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        step, *words = line.split()
        if step == "publish":
            name, signature, version, size, published, at, payload = words
            payload = b"" if payload == "-" else bytes.fromhex(payload)
            file = os.memfd_create(name)
            os.ftruncate(file, 1 << 20)
            where = mmap.mmap(file, 1 << 20)
            os.close(file)
            address = ctypes.addressof(ctypes.c_char.from_buffer(where))
            where[32:32 + len(payload)] = payload
            where[8:32] = struct.pack("<IIQQ", int(version), int(size), int(published), int(at) or address + 32)
            where[:8] = signature.encode()
        elif step == "change":
            payload = bytes.fromhex(words[0])
            where[16:24] = bytes(8)
            where[32:32 + len(payload)] = payload
            where[12:16] = struct.pack("<I", len(payload))
            where[16:24] = struct.pack("<Q", boot_ns())
        elif step == "withhold":
            withheld = Withheld()
        elif step == "fill":
            withheld.fill(bytes.fromhex(words[0]))
        elif step == "touch":
            pages = mmap.mmap(-1, int(words[0]) * mmap.PAGESIZE)
            pages.madvise(mmap.MADV_NOHUGEPAGE)
            for i in range(0, len(pages), mmap.PAGESIZE):
                pages[i] = 1
        print("done", flush=True)


if __name__ == "__main__":
    main()
