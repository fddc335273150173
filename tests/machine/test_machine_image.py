# SPDX-License-Identifier: GPL-2.0-only
"""The image with the emulated machine, and the commands of the examples for GitHub and GitLab in a runc container of it
without capabilities and without a network."""
import json
import os
import pathlib
import subprocess

import images
import pytest
import test_examples
from records import check_stream, parse

MOST = 150 << 20  # bytes of the image


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    return images.make(tmp_path_factory.mktemp("image") / "machine", "image-machine")


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_builds_are_the_same_to_the_bit_and_not_large(layout, tmp_path):
    ours = files(layout)
    assert files(images.make(tmp_path / "again", "image-machine", TZ="Pacific/Kiritimati", LC_ALL="C.UTF-8")) == ours
    assert sum(map(len, ours.values())) < MOST


@pytest.fixture
def run(layout, tmp_path):
    """A function that runs a command in a container as in the example for runc, in a folder of this machine."""
    def run(*command):
        spec = json.loads((layout.parent / "bundle" / "config.json").read_text())
        assert not any(spec["process"]["capabilities"].values())
        assert {"network", "pid"} <= {one["type"] for one in spec["linux"]["namespaces"]}
        assert "/dev/kvm" not in json.dumps(spec)
        spec["root"]["path"] = str(layout.parent / "bundle" / "rootfs")
        if command:
            spec["process"]["args"] = list(command)
        spec["mounts"].append({"destination": "/work", "type": "bind", "source": str(tmp_path), "options": ["rbind", "ro"]})
        bundle = tmp_path / "bundle"
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(spec))
        done = subprocess.run(["runc", "--root", tmp_path / "state", "run", "-b", bundle, f"nhmtap-machine-{os.getpid()}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr
    return run


def test_the_example_for_runc_counts(run):
    status, out, err = run()
    assert status == 0, err
    records = parse(out)
    check_stream(records)
    assert records[0]["host"]["emulated"]["model"] == "ep"
    counts = {record["event"]: record["scaled"] for record in records if record["type"] == "count"}
    assert set(counts) == {"instructions:u", "cycles:u"} and all(counts.values())


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_commands_for_a_forge_run_in_a_container(run, name, tmp_path):
    compile, measure = test_examples.commands(name)
    subprocess.run(compile.replace("search.c", str(pathlib.Path(test_examples.EXAMPLES, "search.c"))), shell=True, cwd=tmp_path, check=True)
    measure = "nhmtap " + measure.partition('"$IMAGE" ')[2] if "docker" in measure else measure
    status, out, err = run("sh", "-c", measure)
    assert status == 0 and out.count("as expected") == 2, out + err
