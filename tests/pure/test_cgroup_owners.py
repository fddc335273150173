# SPDX-License-Identifier: GPL-2.0-only
"""The owner of a cgroup: the paths that runtimes, the kubelet and systemd document (version 2)."""
import pytest

from compiled import compiled

ID = "3726184226f5d3147c25fdeab5b60097e378e8a720503a5e19ecfdf29f869860"
OTHER = "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"
POD = "a6537f3e-228a-4833-91d0-d5889163f4e2"
IN_SLICE = POD.replace("-", "_")
STATIC = "0123456789abcdef0123456789abcdef"  # the kubelet's own pods: a hash
SLICES = "/kubepods.slice/kubepods-burstable.slice"


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    said = compiled(tmp_path_factory.mktemp("owners"), "owners")
    return lambda cgroup: tuple(None if word == "-" else word for word in said(cgroup + "\n").split())


@pytest.mark.parametrize("path, runtime, unit", [
    # docs.docker.com, "Runtime metrics": both drivers; rootless
    (f"/docker/{ID}", "docker", None),
    (f"/system.slice/docker-{ID}.scope", "docker", f"docker-{ID}.scope"),
    (f"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope", "docker", "user@1000.service"),
    # containerd with nerdctl, and by itself
    (f"/system.slice/nerdctl-{ID}.scope", "containerd", f"nerdctl-{ID}.scope"),
    (f"/default/{ID}", None, None),
    # podman-run(1), --cgroup-parent: machine.slice, /libpod_parent with cgroupfs; crun's own cgroup inside
    (f"/machine.slice/libpod-{ID}.scope", "podman", f"libpod-{ID}.scope"),
    (f"/machine.slice/libpod-{ID}.scope/container", "podman", f"libpod-{ID}.scope"),
    (f"/libpod_parent/libpod-{ID}", "podman", None),
    (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container", "podman",
     "user@1000.service"),
    # CRI-O without a kubelet
    (f"/system.slice/crio-{ID}.scope", "cri-o", f"crio-{ID}.scope"),
    (f"/crio-{ID}", "cri-o", None),
    # runc without a cgroupsPath
    (f"/{ID}", None, None),
])
def test_containers(owner, path, runtime, unit):
    assert owner(path) == (ID, runtime, None, unit)


@pytest.mark.parametrize("pod", [f"{SLICES}/kubepods-burstable-pod{IN_SLICE}.slice",
                                 "/kubepods.slice/kubepods-besteffort.slice"
                                 f"/kubepods-besteffort-pod{IN_SLICE}.slice",
                                 f"/kubepods.slice/kubepods-pod{IN_SLICE}.slice",
                                 # kind sets --cgroup-root=/kubelet
                                 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
                                 f"/kubelet-kubepods-burstable-pod{IN_SLICE}.slice"])
@pytest.mark.parametrize("prefix, runtime", [("cri-containerd", "containerd"), ("crio", "cri-o"), ("docker", "docker")])
def test_pods_of_systemds_driver(owner, pod, prefix, runtime):
    unit = f"{prefix}-{ID}.scope"
    assert owner(f"{pod}/{unit}") == (ID, runtime, POD, unit)
    assert owner(f"{pod}/{unit}/init") == (ID, runtime, POD, unit)
    assert owner(pod) == (None, None, POD, None)


@pytest.mark.parametrize("below", ["/kubepods/burstable", "/kubepods/besteffort", "/kubepods"])
@pytest.mark.parametrize("name, runtime", [(ID, None), (f"crio-{ID}", "cri-o")])
def test_pods_of_the_cgroupfs_driver(owner, below, name, runtime):
    assert owner(f"{below}/pod{POD}/{name}") == (ID, runtime, POD, None)


@pytest.mark.parametrize("prefix, runtime", [("cri-containerd", "containerd"), ("crio", "cri-o")])
def test_drivers_that_disagree(owner, prefix, runtime):
    """The kubelet names a slice, and the runtime makes a folder with that name."""
    path = f"/system.slice/containerd.service/kubepods-burstable-pod{IN_SLICE}.slice:{prefix}:{ID}"
    assert owner(path) == (ID, runtime, POD, "containerd.service")


def test_a_static_pod_has_a_hash(owner):
    assert owner(f"/kubepods/burstable/pod{STATIC}/{ID}") == (ID, None, STATIC, None)
    unit = f"cri-containerd-{ID}.scope"
    assert owner(f"{SLICES}/kubepods-burstable-pod{STATIC}.slice/{unit}") == (ID, "containerd", STATIC, unit)


def test_a_container_in_a_container_is_the_inner_one(owner):
    assert owner(f"/system.slice/docker-{OTHER}.scope/kubepods/pod{POD}/{ID}") == (
        ID, None, POD, f"docker-{OTHER}.scope")
    assert owner(f"/docker/{OTHER}/docker/{ID}") == (ID, "docker", None, None)


@pytest.mark.parametrize("path, unit", [
    ("/system.slice/ssh.service", "ssh.service"),
    ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
    ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", "user@1000.service"),
    ("/init.scope", "init.scope"),
    ("/system.slice/_cpu.service", "cpu.service"),  # escaped: it would be a file of the controller
    ("/system.slice", None),
    ("/", None),
    ("/kubepods", None),
    ("/some/group", None),
])
def test_units(owner, path, unit):
    assert owner(path) == (None, None, None, unit)


@pytest.mark.parametrize("path", [
    f"/machine.slice/libpod-conmon-{ID}.scope",  # watches the container from outside
    f"/system.slice/crio-conmon-{ID}.scope",
    f"/docker/{ID}0",
    f"/docker/{ID[1:]}",
    f"/docker/x{ID}",
    f"/system.slice/docker-{ID}.service",
    f"/docker-{ID}",
])
def test_what_is_no_container(owner, path):
    assert owner(path)[0] is None
