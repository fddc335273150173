# SPDX-License-Identifier: GPL-2.0-only
"""Copies of the tree, with the objects that are already built."""
import os
import shutil
import subprocess

from records import NHMTAP

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NHMTAP_BUILD", os.path.dirname(os.path.abspath(NHMTAP)))
# Where this build has its libperf, so that a copy need not build another.
LIBPERF = os.path.abspath(os.environ.get("LIBPERF") or os.path.join(BUILD, "libperf"))
# Variables of a make that runs these tests. The make in the copy must not inherit them.
OURS = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "O", "V", "T", "jobs", "WITHOUT"}
# A compiler that leaves an object as it is, since what it was made of has only another date.
SPARING = """#!/bin/sh
for argument; do
	[ "$before" = -o ] && made=$argument
	before=$argument
done
case " $* " in
*" -c "*) [ -e "$made" ] && exec touch "$made" ;;
esac
exec {} "$@"
"""


class Tree:
    def __init__(self, path):
        self.path = path
        inside = not os.path.relpath(BUILD, ROOT).startswith("..")
        self.folder = os.path.relpath(BUILD, ROOT) if inside else "build"
        shutil.copytree(ROOT, path, symlinks=True, ignore=shutil.ignore_patterns(
            ".git", "build", "build-*", "__pycache__", ".hypothesis", ".pytest_cache"))
        if inside:
            shutil.copytree(BUILD, path / self.folder, symlinks=True,
                            ignore=shutil.ignore_patterns("libperf", "machine", "sanitize", "coverage", "gcda", "deb", "minimal"))
        self.make("all")

    def run(self, *arguments, environment=(), timeout=1800, **options):
        clean = {name: value for name, value in os.environ.items() if name not in OURS}
        return subprocess.run(["make", f"O={self.folder}", f"LIBPERF={LIBPERF}", *arguments],
                              cwd=self.path, env=clean | dict(environment), capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False,
                              **options)

    def make(self, *arguments):
        """Returns what make reports that it makes: {(action, file)}."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return {tuple(line.split()) for line in done.stdout.splitlines() if line.startswith("  ")}

    def made_after_touch(self, name):
        """Returns what make makes, and reports so, once a file has another date. Nothing is compiled for it that is there."""
        self.touch(name)
        return self.make("all", *(f"{variable}={self.sparing(usual)}" for variable, usual in (("CC", "gcc"), ("CLANG", "clang"))))

    def sparing(self, compiler):
        path = self.path / self.folder / f"sparing-{compiler}"
        path.write_text(SPARING.format(compiler))
        path.chmod(0o755)
        return path

    def touch(self, name):
        os.utime(self.path / name)

    def sources_that_include(self, header):
        return self.sources_with(f"#include {header}")

    def sources_with(self, *texts):
        """Searches the text of the sources, not make's dependencies."""
        found = set()
        for top in ("user", "bpf"):
            for folder, _, names in os.walk(self.path / top):
                for name in names:
                    full = os.path.join(folder, name)
                    with open(full, encoding="utf-8") as file:
                        said = file.read() if name.endswith(".c") else ""
                    if any(text in said for text in texts):
                        found.add(os.path.relpath(full, self.path))
        return found

    def programs(self):
        return {f"bpf/{name}" for name in os.listdir(self.path / "bpf") if name.endswith(".bpf.c")}
