# SPDX-License-Identifier: GPL-2.0-only
"""The container image of the program under test, and containers of it, configured as in the
examples next to it."""
import json
import os
import signal
import subprocess
import time

import cgroups
from records import NHMTAP, Result

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "user", "packaging", "image")
VARIABLE = {"image": "image", "image-machine": "machine_image"}  # of packaging.mk, with the folder
# Set by the make that may be running these tests.
OURS = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "O", "V", "T", "jobs"}


def example(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def make(folder, target="image", **environment):
    """Runs `make image`, or `make image-machine`, for the program under test, which is not rebuilt. Returns the image's
    folder."""
    build = os.environ.get("NHMTAP_BUILD", os.path.dirname(os.path.abspath(NHMTAP)))
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(["make", target, f"O={build}", f"{VARIABLE[target]}={folder}", "-o", f"{build}/nhmtap", "-o",
                           f"{build}/nhmtap-known"], cwd=ROOT, env=clean | environment, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "oci"


def config_of(layout):
    """Returns the image's name and configuration, found as by a runtime: from the index by
    digests."""
    def blob(descriptor):
        kind, digest = descriptor["digest"].split(":")
        return json.loads((layout / "blobs" / kind / digest).read_text())
    manifest, = json.loads((layout / "index.json").read_text())["manifests"]
    return manifest["annotations"]["org.opencontainers.image.ref.name"], blob(blob(manifest)["config"])


def bundle(folder, image, config, *arguments, cgroup=None, change=lambda spec: None):
    """Makes a bundle of the runc example with this CONFIG and this machine's cgroups. Records go to
    stdout."""
    spec = json.loads(example("runc.json"))
    folder.mkdir()
    (folder / "config").mkdir()
    (folder / "config" / "config.json").write_text(json.dumps(config))
    spec["root"]["path"] = str(image)
    if arguments:
        spec["process"]["args"] = ["nhmtap", *map(str, arguments)]
    for mount in spec["mounts"]:
        if mount["destination"] == "/sys/fs/cgroup":
            mount["source"] = cgroups.mount()
    spec["mounts"].append({"destination": "/etc/nhmtap", "type": "bind", "source": str(folder / "config"),
                           "options": ["rbind", "ro"]})
    if cgroup:
        spec["linux"]["cgroupsPath"] = cgroup
    change(spec)
    (folder / "config.json").write_text(json.dumps(spec))
    return folder


class Nhmtap:
    """nhmtap in a container. Records are read as they come. Use it in a with statement."""

    def __init__(self, folder, name):
        self.folder, self.name, self.state = folder, name, folder / "state"
        self.out = folder / "out"
        with open(self.out, "ab") as out, open(folder / "err", "ab") as err:
            self.process = subprocess.Popen(["runc", "--root", self.state, "run", "-b", folder, name],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.runc("kill", self.name, "KILL")
            self.process.wait(timeout=240)
        self.runc("delete", "--force", self.name)

    def runc(self, *arguments):
        return subprocess.run(["runc", "--root", self.state, *arguments], capture_output=True, text=True, timeout=240,
                              check=False).stdout

    def pid(self):
        return json.loads(self.runc("state", self.name))["pid"]

    def records(self):
        text = self.out.read_text()
        return [json.loads(line) for line in text.splitlines(True) if line[-1] == "\n"]

    def until(self, there, times=1):
        deadline = time.monotonic() + 240
        while len([r for r in self.records() if there(r)]) < times:
            assert time.monotonic() < deadline and self.process.poll() is None, \
                self.out.read_text()[-4000:] + (self.folder / "err").read_text()
            time.sleep(0.01)

    def end(self, which=signal.SIGTERM):
        if self.process.poll() is None:
            self.runc("kill", self.name, str(int(which)))
        status = self.process.wait(timeout=240)
        return Result(status, self.out.read_text(), (self.folder / "err").read_text())
