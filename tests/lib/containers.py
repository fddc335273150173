# SPDX-License-Identifier: GPL-2.0-only
"""Containers of runc without an image: the root has nothing in it but a static program."""
import json
import os
import subprocess

import cgroups

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")


def static(folder, name):
    """Builds a program of tests/programs statically, as folder/name."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-static", "-O1", "-g", "-fno-omit-frame-pointer", "-o", folder / name,
                    os.path.join(SOURCES, f"{name}.c"), "-lpthread"], check=True)
    return folder


def bundle(folder, root, *arguments, cgroup=None, change=lambda spec: None):
    """Makes a bundle for `runc run -b`. cgroup: its path below the mount."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "config.json").exists():
        subprocess.run(["runc", "spec"], cwd=folder, check=True)
    spec = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    spec["process"].update(terminal=False, args=list(arguments))
    spec["root"]["path"] = str(root)
    if cgroup:
        spec["linux"]["cgroupsPath"] = cgroup
    change(spec)
    (folder / "config.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder


class Container:
    """A running container whose program reads steps from its input. Use it in a with statement,
    which removes the container and its cgroup at the end."""

    def __init__(self, folder, name):
        self.state, self.name = str(folder / "state"), name
        self.process = subprocess.Popen(["runc", "--root", self.state, "run", "-b", folder, name], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()

    def pid(self):
        """Returns the pid of its first process outside of the container."""
        state = subprocess.run(["runc", "--root", self.state, "state", self.name], capture_output=True, check=True)
        return json.loads(state.stdout)["pid"]

    def do(self, step):
        self.process.stdin.write(step + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


def folder_of(cgroup):
    """Returns the folder of a cgroup, given its path below the mount."""
    return cgroups.mount() + cgroup
