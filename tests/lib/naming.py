# SPDX-License-Identifier: GPL-2.0-only
"""Asks the naming engine (tests/pure/names.c) and the tools that it is compared with."""
import functools
import glob
import json
import os
import re
import subprocess


# What is chosen when the program starts, so that no other file needs it: the worker, which does without libcapstone.
WORKER = ("confined/served.c", "confined/disassemble_without.c")


class Names:
    """The engine as a process that answers each line with a line."""

    def __init__(self, program, *options, before=()):
        # If the engine fails, one of the tests would search forever.
        self.process = subprocess.Popen(["timeout", "200", *before, program, *map(str, options)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.process.stderr.read()
        return json.loads(answer)

    def file(self, path, offset, build_id="-"):
        return self.ask(f"file {path} {build_id} {offset:x}")

    def kernel(self, address):
        return self.ask(f"kernel {address:x}")

    def jit(self, path, address, since=0, ended=False):
        return self.ask(f"jit {path} {address:x} {since} {int(ended)}")

    def memory(self):
        return self.ask("memory")

    def later(self, seconds):
        self.ask(f"later {seconds}")

    def forget(self, seconds):
        self.ask(f"forget {seconds}")

    def close(self):
        """Ends the process. It must exit with status 0 and without leaks."""
        self.process.stdin.close()
        assert self.process.stdout.read() == ""
        assert self.process.wait() == 0, self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True,
                          **options).stdout


def symbols(path, *options):
    """Returns the functions that nm lists: {name: [(address, size), …]}."""
    found = {}
    for line in run("nm", "-S", *options, path).splitlines():
        match = re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [tTwWi] (.*)", line)
        if match:
            found.setdefault(match[3].split("@")[0], []).append((int(match[1], 16), int(match[2], 16)))
    return found


def segments(path):
    """Returns the segments of a file that have code: (offset, address, size)."""
    return segments_then(path, os.stat(path).st_mtime_ns)


@functools.cache
def segments_then(path, _):
    """The same of a file that has not changed since: tests ask for the offsets of hundreds of addresses."""
    found = []
    for line in run("readelf", "-lW", path).splitlines():
        match = re.match(r"\s+LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R.E", line)
        if match:
            found.append(tuple(int(part, 16) for part in match.groups()))
    return found


def offset_of(path, address):
    for offset, begin, size in segments(path):
        if begin <= address < begin + size:
            return address - begin + offset
    raise AssertionError(f"{address:#x} is in no code of {path}")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path))[1]


def addr2line(path, addresses):
    """Returns the frames at each address by addr2line: [(function, file, line), …], innermost
    first. "??" and 0 mean unknown."""
    lines = run("addr2line", "-a", "-i", "-f", "-C", "-e", path,
                input="".join(f"{address:#x}\n" for address in addresses)).splitlines()
    answers, at = {}, 0
    while at < len(lines):
        frames = answers.setdefault(int(lines[at], 16), [])
        at += 1
        while at < len(lines) and not re.fullmatch("0x[0-9a-f]{8,16}", lines[at]):
            file, _, line = lines[at + 1].split(" (disc")[0].rpartition(":")
            frames.append((lines[at], file, int(line) if line.isdigit() else 0))
            at += 2
    return answers


def llvm_symbolizer(path, addresses):
    """Returns the lines of each address by LLVM: [(file, line), …], innermost first. "" and 0 mean
    unknown."""
    answers = run(sorted(glob.glob("/usr/lib/llvm-*/bin/llvm-symbolizer"))[0], "--inlines", "--output-style=JSON", "-e", path,
                  input="".join(f"{address:#x}\n" for address in addresses))
    return {int(answer["Address"], 16): [(frame["FileName"], frame["Line"]) for frame in answer["Symbol"]]
            for answer in map(json.loads, answers.splitlines())}


def places(name):
    """Returns (file, line) of each frame."""
    return [(frame.get("file", ""), frame["line"]) for frame in name["frames"]]


def functions(name):
    return [frame.get("symbol") for frame in name["frames"]]
