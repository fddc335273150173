# SPDX-License-Identifier: GPL-2.0-only
"""The container image, the examples that run it, and how nhmtap works in a runc container with no
more privileges than the examples give."""
import json
import os
import re
import socket
import subprocess
import tarfile
import time

import pytest
import yaml

import cgroups
import containers
import images
import manual
import memory
from asked import ask
from images import Nhmtap
from otlp import Receiver
from puppet import Puppet
from records import Result
from running import enter
from sessions import until

pytestmark = [pytest.mark.xdist_group("image"), pytest.mark.plain]

NAME = f"nhmtap-image-{os.getpid()}"
CAPABILITIES = ["CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]
ID = "ba5eba11" + "0123456789abcdef" * 3 + "01234567"
UID = "0a1b2c3d-0123-4567-89ab-0123456789ab"
FAULTS = {"event": "page-faults:u", "count": 1}


@pytest.fixture(scope="module", name="layout")
def image_layout(tmp_path_factory):
    return images.make(tmp_path_factory.mktemp("image") / "image")


@pytest.fixture(scope="module", name="root")
def image_root(layout):
    """Its files, as a runtime unpacks them."""
    tag, _ = images.config_of(layout)
    bundle = layout.parent / "unpacked"
    subprocess.run(["umoci", "unpack", "--image", f"{layout}:{tag}", bundle], check=True)
    return bundle / "rootfs"


@pytest.fixture(scope="module", name="puppet_root")
def root_of_a_puppet(tmp_path_factory):
    return containers.static(tmp_path_factory.mktemp("puppet"), "puppet")


# --- the image ------------------------------------------------------------------------------------


def test_the_image_says_what_it_is_and_runs_the_program_as_pid_1(nhmtap, layout):
    tag, config = images.config_of(layout)
    version = nhmtap("--version").out.split()[-1]
    labels = config["config"]["Labels"]
    assert tag == labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.licenses"] == "GPL-2.0-only"
    assert config["config"]["Entrypoint"] == ["nhmtap"]
    assert config["config"]["Cmd"] == ["run", "/etc/nhmtap/config.json"]
    assert "User" not in config["config"] and (config["os"], config["architecture"]) == ("linux", "amd64")


def test_it_holds_the_program_and_its_libraries_and_no_shell(root):
    executable = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file() and os.access(path, os.X_OK))
    programs = [str(path) for path in executable if ".so." not in path.name]
    assert programs == ["usr/bin/nhmtap", "usr/lib/nhmtap/nhmtap-known"]
    assert not list(root.rglob("*.crt")) and not list(root.rglob("*.pem"))
    assert [path.name for path in (root / "etc").rglob("*") if path.is_file()] == ["config.json"]


def test_two_builds_are_the_same_to_the_bit(layout, tmp_path):
    again = images.make(tmp_path / "image", TZ="Pacific/Kiritimati", LC_ALL="C.UTF-8")
    assert files(again) == files(layout)
    other = images.make(tmp_path / "other", SOURCE_DATE_EPOCH="86400")
    assert images.config_of(other)[1]["created"] == "1970-01-02T00:00:00Z"
    layer, = [path for path in (other / "blobs").rglob("*") if path.is_file() and tarfile.is_tarfile(path)]
    with tarfile.open(layer) as tar:
        assert {(entry.mtime, entry.uid, entry.gid) for entry in tar} == {(86400, 0, 0)}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [command for _, command in manual.examples("$") if manual.in_container(command)])
def test_what_readme_and_the_manual_do_with_it_works(layout, tmp_path, command):
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "image").symlink_to(layout.parent)
    manual.run(command, tmp_path)


def documents(name):
    return list(yaml.safe_load_all(images.example(name)))


def test_kubernetes_examples_give_the_least_privileges():
    _, daemonset = documents("daemonset.yaml")
    pod, = documents("sidecar.yaml")
    for spec, container in ((daemonset["spec"]["template"]["spec"], daemonset["spec"]["template"]["spec"]["containers"][0]),
                            (pod["spec"], pod["spec"]["initContainers"][0])):
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"]
        assert [f"CAP_{name}" for name in security["capabilities"]["add"]] == CAPABILITIES
        assert security["readOnlyRootFilesystem"] and security["allowPrivilegeEscalation"] is False
        assert "privileged" not in security and security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not spec["automountServiceAccountToken"] and not {"hostNetwork", "hostIPC"} & set(spec)
        assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert pod["spec"]["shareProcessNamespace"] and "hostPID" not in pod["spec"]
    assert pod["spec"]["initContainers"][0]["restartPolicy"] == "Always"


def test_the_compose_example_gives_the_least_privileges():
    service = documents("compose.yaml")[0]["services"]["nhmtap"]
    assert service["cap_drop"] == ["ALL"] and [f"CAP_{name}" for name in service["cap_add"]] == CAPABILITIES
    assert service["read_only"] and "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service and "volumes" not in service and service["network_mode"] == "none"


def test_the_runc_example_gives_the_least_privileges():
    spec = json.loads(images.example("runc.json"))
    assert all(names == CAPABILITIES for names in spec["process"]["capabilities"].values())
    assert set(spec["process"]["capabilities"]) == {"bounding", "effective", "permitted"}
    assert spec["root"]["readonly"] and spec["process"]["noNewPrivileges"]
    assert all("ro" in mount["options"] for mount in spec["mounts"] if mount["type"] in ("bind", "sysfs"))


def test_the_seccomp_profile_allows_nothing_that_changes_others():
    profile = json.loads(images.example("seccomp.json"))
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO" and json.loads(images.example("runc.json"))["linux"]["seccomp"] == profile
    allowed = [name for group in profile["syscalls"] for name in group["names"]]
    assert len(allowed) == len(set(allowed)) and {group["action"] for group in profile["syscalls"]} == {"SCMP_ACT_ALLOW"}
    assert not {"ptrace", "process_vm_writev", "mount", "umount2", "setns", "unshare", "init_module",
                "finit_module", "kexec_load", "reboot", "chroot", "pivot_root", "keyctl", "mknod", "chmod", "chown"} & set(allowed)


def test_the_apparmor_profile_gives_the_same_capabilities():
    rules = [line.strip(" ,\n") for line in images.example("apparmor").splitlines() if not line.startswith("#")]
    assert [f"CAP_{rule.split()[1].upper()}" for rule in rules if rule.startswith("capability ")] == CAPABILITIES
    writable = [rule for rule in rules if re.search(r"(/\S+) \S*w", rule)]
    assert all(rule.startswith("owner ") or rule == "/dev/null rw" for rule in writable), writable


def test_the_systemd_unit_gives_the_same_capabilities():
    with open(os.path.join(images.FOLDER, "..", "debian", "nhmtap.service"), encoding="utf-8") as file:
        lines = dict(line.strip().split("=", 1) for line in file if "=" in line and line[0] != "#")
    assert lines["AmbientCapabilities"].split() == lines["CapabilityBoundingSet"].split() == CAPABILITIES


CONFIGS = pytest.mark.parametrize("config", [
    pytest.param(lambda: images.example("config.json"), id="image"),
    pytest.param(lambda: documents("daemonset.yaml")[0]["data"]["config.json"], id="daemonset"),
    pytest.param(lambda: documents("compose.yaml")[0]["configs"]["nhmtap"]["content"], id="compose")])


@CONFIGS
def test_the_configurations_are_valid(nhmtap, tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(config())
    assert nhmtap("run", "--check", path).status == 0


@CONFIGS
def test_nhmtap_keeps_by_itself_to_what_its_container_is_given(config):
    assert json.loads(config())["limits"] == {"memory": "64M", "cpu_share": "5%"}


def test_each_container_is_given_that():
    service = documents("compose.yaml")[0]["services"]["nhmtap"]
    assert (service["mem_limit"], service["cpus"]) == ("64m", 0.05)
    resources = json.loads(images.example("runc.json"))["linux"]["resources"]
    assert resources["memory"] == {"limit": 64 << 20}
    assert resources["cpu"]["quota"] / resources["cpu"]["period"] == 0.05
    kubernetes = [documents("daemonset.yaml")[1]["spec"]["template"]["spec"]["containers"][0],
                  documents("sidecar.yaml")[0]["spec"]["initContainers"][0]]
    assert [container["resources"]["limits"] for container in kubernetes] == [{"cpu": "50m", "memory": "64Mi"}] * 2
    assert kubernetes[1]["args"][-4:] == ["--memory", "64M", "--cpu-share", "5%"]


def test_the_daemonset_serves_metrics_at_its_port_and_follows_its_configmap(nhmtap, tmp_path):
    config = json.loads(documents("daemonset.yaml")[0]["data"]["config.json"])
    container, = documents("daemonset.yaml")[1]["spec"]["template"]["spec"]["containers"]
    assert config["listen"].endswith(f":{container['ports'][0]['containerPort']}")
    config["listen"] = f"unix:{tmp_path}/metrics"
    for activity in config["activities"]:
        activity["interval_ms"] = 50
    path, out = tmp_path / "config.json", tmp_path / "out"
    assert config["outputs"][0] == {}  # the log
    config["outputs"][0] = {"path": str(out)}
    path.write_text(json.dumps(config))
    process = nhmtap.start(*(str(path) if word.endswith(".json") else word for word in container["args"]))
    page = ["curl", "-s", "--unix-socket", tmp_path / "metrics", "http://nhmtap/metrics"]
    until(lambda: 'nhmtap_events_total{activity="load"' in subprocess.run(page, capture_output=True, text=True, check=False).stdout)
    path.write_text(json.dumps({**config, "activities": config["activities"][:1]}))
    until(lambda: '"outcome":"taken"' in read(out))
    nhmtap.interrupt(process)


def test_the_sidecar_follows_its_pod(nhmtap, tmp_path, cgroup):
    """Cgroups have names as by the kubelet's systemd driver. The container starts after nhmtap."""
    path, folder = cgroup
    container, = documents("sidecar.yaml")[0]["spec"]["initContainers"]
    arguments = [word.replace("$(POD_UID)", UID).replace("10000", "50") for word in container["args"]]
    pod = f"kubepods-pod{UID.replace('-', '_')}.slice"
    out = tmp_path / "out"
    process = nhmtap.start(*arguments, "-e", "page-faults:u", "-c", "1", "-o", out)
    inner = f"{pod}/cri-containerd-{ID}.scope"
    with Puppet() as puppet:
        os.makedirs(f"{folder}/{inner}")
        until(lambda: '"appeared"' in read(out))
        enter(f"{folder}/{inner}", puppet.pid)
        puppet.do("faults=100")
        enter(os.path.dirname(folder), puppet.pid)
    done = nhmtap.interrupt(process)
    result = Result(done.status, read(out), done.err)
    for name in (inner, pod):
        cgroups.remove(f"{folder}/{name}")
    assert {(r["cgroup"], r["k8s.pod.uid"]) for r in result.of("target")} == {(f"{path}/{pod}", UID)}
    entry, = [e for e in result.entries() if e["samples"] >= 100]
    assert (entry["k8s.pod.uid"], entry["container.id"]) == (UID, ID)


def read(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def is_late(result):
    """On a busy machine an interval's time for names may be over before the file is read."""
    return sum(r["names"]["unnamed"]["no_time"] for r in result.of("end") if "names" in r)


def is_named(result, code):
    return code.get("symbol") == "touch" or ("symbol" not in code and is_late(result))


# --- what each capability is for ------------------------------------------------------------------


def without(*missing):
    def change(spec):
        for names in spec["process"]["capabilities"].values():
            names[:] = [name for name in names if name not in missing]
    return change


@pytest.fixture(name="hidden_puppet")
def anothers_puppet(tmp_path, puppet_root):
    """Another user's process, started before nhmtap. Only that user may read its folder."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    copy = folder / "puppet"
    copy.write_bytes((puppet_root / "puppet").read_bytes())
    copy.chmod(0o700)
    for path in (folder, copy):
        os.chown(path, 65534, 65534)
    with subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "./puppet"], cwd=folder, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def measured(nhmtap_in, puppet):
    """Runs until there are samples of the puppet and the kernel, or an activity is refused."""
    def touched(record):
        return any(e.get("pid") == puppet.pid and e["samples"] >= 300 for e in record.get("entries", ()))

    def kernel(record):
        return any(e["code"].get("module") == "[kernel]" for e in record.get("entries", ()))
    nhmtap_in.until(lambda r: r["type"] in ("start", "error") and r["activity"] == "ticks")
    if not any(r["type"] == "error" for r in nhmtap_in.records()):
        puppet.stdin.write("faults=300\n")
        puppet.stdin.flush()
        nhmtap_in.until(touched)
        nhmtap_in.until(kernel)
    return nhmtap_in.end()


MEASURED = {"activities": [
    {"name": "counts", "command": "stat", "event": "page-faults", "all_cpus": True, "interval_ms": 100},
    {"name": "faults", "command": "profile", "all_cpus": True, "by": "comm,pid,symbol", "interval_ms": 100, **FAULTS},
    {"name": "ticks", "command": "profile", "all_cpus": True, "by": "symbol", "interval_ms": 100, "event": "cpu-clock",
     "freq": 199}]}
UNLIMITED = lambda spec: spec["linux"]["resources"].pop("cpu")  # noqa: E731


@pytest.mark.parametrize("missing", [None, *CAPABILITIES])
def test_a_missing_capability_costs_what_doctor_says(tmp_path, root, hidden_puppet, missing):
    def change(spec):
        UNLIMITED(spec)
        without(missing)(spec)
    asked = images.bundle(tmp_path / "asked", root, {}, "doctor", change=change)
    with Nhmtap(asked, NAME) as container:
        container.process.wait(timeout=60)
        doctor = container.end()
    lacking = [r["name"] for r in doctor.of("permission", ok=False) if r["name"].startswith("CAP_")]
    assert lacking == ([missing] if missing else [])
    works = {r["name"]: r["works"] for r in doctor.of("facility")}
    with Nhmtap(images.bundle(tmp_path / "run", root, MEASURED, change=change), NAME) as container:
        result = measured(container, hidden_puppet)
    start = result.of("start", command="run")[0]
    assert start.get("capabilities_missing", []) == lacking
    assert start["capabilities"] == [name for name in ["CAP_PERFMON", "CAP_BPF", *CAPABILITIES[2:]] if name != missing]
    refused = {r["activity"] for r in result.of("error")} - {"session"}
    assert refused == {*(() if works["system"] else {"counts"}), *(() if works["profile"] else {"faults", "ticks"})}
    assert bool(refused) == (missing in ("CAP_BPF", "CAP_PERFMON")), "samples need both"
    if refused:
        return
    touched, = [e["code"] for e in result.entries(pid=hidden_puppet.pid) if e["samples"] >= 300]
    ticks = result.one("end", activity="ticks")["names"]
    if missing == "CAP_SYSLOG":
        assert "kernel_why" in ticks or is_late(result)
    else:
        assert "kernel_why" not in ticks
    if missing in ("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"):
        assert "symbol" not in touched
    else:
        assert is_named(result, touched)


# --- the seccomp profile ---------------------------------------------------------------------------


def strictly(folder):
    """Makes each system call that the profile does not list fatal: usually such a call fails, which may pass unnoticed. One is
    only tried: open_by_handle_at(), for a cgroup that came after the search for all, needs a capability that the container
    does not have. The folder is the container's /var/log/nhmtap, and it has the host's network, for servers of the test."""
    def change(spec):
        UNLIMITED(spec)
        del spec["linux"]["resources"]["memory"]
        seccomp = spec["linux"]["seccomp"]
        seccomp["defaultAction"] = "SCMP_ACT_KILL_PROCESS"
        seccomp["syscalls"].append({"names": ["open_by_handle_at"], "action": "SCMP_ACT_ERRNO", "errnoRet": seccomp.pop("defaultErrnoRet")})
        spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] != "network"]
        spec["mounts"].append({"destination": "/var/log/nhmtap", "type": "bind", "source": str(folder), "options": ["bind", "rw"]})
    return change


# What needs a PMU loads no other kinds of programs. Each fault of a busy machine would take minutes to write.
OF_PUPPETS = {**FAULTS, "where": 'comm=="puppet"'}
EACH_ACTIVITY = [
    {"name": "counts", "command": "stat", "event": "page-faults,task-clock", "all_cpus": True, "interval_ms": 100},
    {"name": "cgroups", "command": "stat", "event": "page-faults", "for_each_cgroup": "/*", "interval_ms": 100},
    {"name": "samples", "command": "profile", "all_cpus": True, "by": "comm,pid,cgroup,symbol,line", "interval_ms": 100, **OF_PUPPETS},
    {"name": "stacks", "command": "profile", "all_cpus": True, "call_graph": True, "interval_ms": 100, "freq": 199},
    {"name": "loads", "command": "mem", "all_cpus": True, "by": "page,symbol", "interval_ms": 100, **OF_PUPPETS},
    {"name": "each", "command": "stream", "event": "cpu-clock", "freq": 49, "all_cpus": True, "fields": "comm,pid,symbol"}]
# Their formats follow the dot; %t: a file has one interval.
FILES = ("x.table", "x.openmetrics", "x.otlp", "x.otlp-profiles-json", "x.flat", "%t.folded", "%t.pprof", "%t.firefox",
         "%t.callgrind", "%t.speedscope")


@pytest.mark.parametrize("files", [FILES[:5], FILES[5:]], ids=["records", "files of intervals"])
def test_counts_samples_and_outputs_need_only_the_calls_of_the_profile(tmp_path, root, hidden_puppet, files):
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o777)
    place, config = "/var/log/nhmtap", {"activities": EACH_ACTIVITY}
    with Receiver() as metrics, Receiver() as profiles, socket.create_server(("127.0.0.1", 0)) as server:
        config["outputs"] = [
            {}, {"path": f"{place}/x.jsonl.zst"}, {"path": f"{place}/x.prom", "format": "prometheus"},
            *({"path": f"{place}/{name}", "format": name.partition(".")[2]} for name in files),
            {"path": f"tcp:127.0.0.1:{server.getsockname()[1]}"}, {"path": f"unix:{place}/nobody"},
            {"path": "listen", "format": "openmetrics"}, {"path": metrics.url(), "format": "otlp"},
            {"path": profiles.url("/v1development/profiles"), "format": "otlp-profiles"}]
        config["listen"] = f"unix:{place}/listen"
        with Nhmtap(images.bundle(tmp_path / "run", root, config, "run", "--watch", "/etc/nhmtap/config.json",
                                  change=strictly(folder)), NAME) as container:
            for activity in EACH_ACTIVITY:
                container.until(lambda r, name=activity["name"]: r["type"] == "start" and r["activity"] == name)
            hidden_puppet.stdin.write("faults=300\n")
            hidden_puppet.stdin.flush()
            # They may be in the entries of several intervals.
            until(lambda: container.process.poll() is not None or 300 <= sum(
                e["samples"] for r in container.records() for e in r.get("entries", ()) if e.get("pid") == hidden_puppet.pid))
            connection, _ = server.accept()
            assert connection.recv(10) == b'{"type":"s'
            connection.close()
            assert ask(f"unix:{folder}/listen", "/metrics")[0] == 200
            assert metrics.next().status == profiles.next().status == 200
            container.runc("kill", NAME, "HUP")
            container.until(lambda r: r["type"] == "reload")
            result = container.end()
    assert result.one("end", activity="session")["reason"] == "terminated", result.err
    assert not result.of("error")
    assert all(r["samples"]["aggregated"] for r in result.of("end") if "samples" in r)
    assert all(any(path.stat().st_size for path in folder.glob(name.replace("%t", "*"))) for name in files)


# Says for each call whether it fails with EPERM. That of a capability that the profile does not need would fail by itself.
CALLS = """
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TRY(name, ...) printf(#name " %d\\n", syscall(SYS_##name, __VA_ARGS__) < 0 && errno == EPERM)
int main(void)
{
	TRY(getpid, 0); TRY(sched_yield, 0); TRY(setpriority, 0, 0, 0); TRY(getpriority, 0, 0); TRY(personality, 0xffffffff);
	TRY(inotify_init, 0); TRY(epoll_create, 1); TRY(io_uring_setup, 0, 0); TRY(userfaultfd, 0); TRY(ptrace, 0, 0, 0, 0);
	return 0;
}
"""
ALLOWED = {"getpid", "sched_yield"}


def test_a_call_that_the_profile_does_not_list_is_refused(tmp_path):
    (tmp_path / "calls.c").write_text(CALLS)
    (tmp_path / "root").mkdir()
    subprocess.run(["gcc", "-static", "-o", tmp_path / "root" / "calls", tmp_path / "calls.c"], check=True)

    def change(spec):
        spec["linux"]["seccomp"] = json.loads(images.example("seccomp.json"))
    folder = containers.bundle(tmp_path / "bundle", tmp_path / "root", "/calls", change=change)
    done = subprocess.run(["runc", "--root", folder / "state", "run", "-b", folder, f"{NAME}-calls"], capture_output=True, text=True,
                          check=True)
    refused = dict(line.split() for line in done.stdout.splitlines())
    assert len(refused) == 10 and {name for name, is_refused in refused.items() if is_refused == "0"} == ALLOWED


# --- pid namespaces -------------------------------------------------------------------------------


# The kubelet gives a container a cgroup namespace of its own, and the host's cgroups by a mount.
@pytest.mark.parametrize("namespace", ["host", "shared", "own"])
@pytest.mark.parametrize("cgroup_namespace", [[], [{"type": "cgroup"}]], ids=["cgroups of the host", "kubelet"])
def test_processes_are_named_where_their_namespace_can_be_seen(tmp_path, cgroup, root, puppet_root, namespace, cgroup_namespace):
    path, folder = cgroup
    config = {"activities": [{"name": "faults", "command": "profile", "container": ID[:12], "by": "pid,symbol",
                              "interval_ms": 100, **FAULTS}]}
    application = containers.bundle(tmp_path / "application", puppet_root, "/puppet", cgroup=f"{path}/docker/{ID}")
    with containers.Container(application, f"{NAME}-app") as puppet:
        pid = puppet.pid()

        def change(spec):
            UNLIMITED(spec)
            spec["linux"]["namespaces"] += cgroup_namespace
            if namespace != "host":
                shared = {"path": f"/proc/{pid}/ns/pid"} if namespace == "shared" else {}
                spec["linux"]["namespaces"].append({"type": "pid", **shared})
        with Nhmtap(images.bundle(tmp_path / "run", root, config, change=change), NAME) as container:
            container.until(lambda r: r["type"] == "profile")  # measuring has begun
            puppet.do("faults=1000")
            # They may be in two intervals.
            container.until(lambda r: any(e["samples"] >= 400 for e in r.get("entries", ())))
            result = container.end()
    os.rmdir(f"{folder}/docker")
    touched, *again = [e for e in result.entries() if e["samples"] >= 400]
    assert all((e["pid"], e["code"]) == (touched["pid"], touched["code"]) for e in again)
    assert touched["pid"] == {"host": pid, "shared": 1, "own": 0}[namespace]
    assert is_named(result, touched["code"]) if namespace != "own" else "symbol" not in touched["code"]
    unnamed = result.one("end", activity="faults")["names"]["unnamed"]["no_pid"]
    assert unnamed >= 1000 if namespace == "own" else unnamed < 200


# --- long runs ------------------------------------------------------------------------------------


# The time for which the followed container exists and is away, in total: `make soak-sidecar`.
SECONDS = float(os.environ.get("NHMTAP_SIDECAR_SECONDS", "0"))


def test_with_little_memory_and_little_cpu_it_follows_a_container_that_is_made_again(tmp_path, cgroup, root, puppet_root):
    path, folder = cgroup
    config = {"activities": [{"name": "faults", "command": "profile", "container": ID[:12], "by": "cgroup,symbol",
                              "interval_ms": 500, **FAULTS}]}
    application = containers.bundle(tmp_path / "application", puppet_root, "/puppet", cgroup=f"{path}/docker/{ID}")
    began = []
    with Nhmtap(images.bundle(tmp_path / "run", root, config, cgroup=f"{path}/nhmtap"), NAME) as container:
        container.until(lambda r: r["type"] == "start" and r["activity"] == "faults")
        assert memory.limit(container.pid()) == 64 << 20
        for times in (1, 2, 3):
            with containers.Container(application, f"{NAME}-app") as puppet:
                began.append(len([r for r in container.records() if r["type"] == "profile"]))
                container.until(lambda r: r["type"] == "target" and r["change"] == "appeared", times)
                puppet.do("faults=1000")
                # They may be in two intervals.
                container.until(lambda r: any(e["samples"] >= 400 for e in r.get("entries", ())), times)
                time.sleep(SECONDS / 6)
            container.until(lambda r: r["type"] == "target" and r["change"] == "gone", times)
            time.sleep(SECONDS / 6)
        peak, told = memory.peak(container.pid()), time.monotonic()
        result = container.end()
        took = time.monotonic() - told
    os.rmdir(f"{folder}/docker")
    used = result.one("end", activity="session")
    print(f"{used['duration_ns'] / 1e9:.0f} s, {used['overhead']['cpu_time_ns'] / used['duration_ns']:.2%} of a CPU, "
          f"at most {peak / 2**20:.1f} MiB of 64 MiB, {took:.2f} s from SIGTERM to its end")
    own = f"{path}/docker/{ID}"
    assert result.status == 0 and result.one("end", activity="session")["reason"] == "terminated"
    told = [(r["change"], r["cgroup"]) for r in result.of("target")]
    assert told == [("appeared", own), ("gone", own)] * 3
    touched = [e for e in result.entries() if e["samples"] >= 400]
    assert {(e["container.id"], e["code"]["module"]) for e in touched} == {(ID, "/puppet")}
    assert all(is_named(result, e["code"]) for e in touched)
    # By its own clock: at most two intervals end between a container's start and its record.
    for before, found in zip(began, result.of("target", change="appeared")):
        profiles = [r for r in result.of("profile") if r["seq"] < found["seq"]]
        assert len(profiles) - before <= 2


def test_with_no_more_memory_than_its_limit_it_lives_and_says_what_it_made_smaller(nhmtap, tmp_path, root):
    """Stacks of the whole machine, while programs come and go; the kernel kills a container that needs more."""
    little = memory.little(nhmtap)
    limit = little << 20
    config = {"activities": [{"name": "stacks", "command": "profile", "all_cpus": True, "call_graph": True, "freq": 999,
                              "interval_ms": 500}],
              "limits": {"memory": f"{little}M"}}

    def change(spec):
        UNLIMITED(spec)
        spec["linux"]["resources"]["memory"] = {"limit": limit}
    with Nhmtap(images.bundle(tmp_path / "run", root, config, change=change), NAME) as container:
        container.until(lambda r: r["type"] == "start" and r["activity"] == "stacks")
        assert memory.limit(container.pid()) == limit
        while sum("samples" in r for r in container.records() if r["type"] == "profile") < 5:
            subprocess.run(["sh", "-c", "for i in 1 2 3; do /usr/bin/python3 -c pass; ls / | sort; done"],
                           stdout=subprocess.DEVNULL, check=True)
        print(f"at most {memory.peak(container.pid()) / 2**20:.1f} MiB of {little} MiB")
        result = container.end()
    assert result.status == 0 and result.one("end", activity="session")["reason"] == "terminated"
    assert result.one("end", activity="stacks")["samples"]["aggregated"]
    limits = result.one("start", activity="stacks")["limits"]
    assert limits["memory"] == limit >= sum(limits["parts"].values())
    assert set(limits["made_smaller_from"]) == {"names", "queues", "entries", "unwinding"}


def test_what_is_killed_and_restarted_leaves_whole_lines_and_loses_none(tmp_path, root):
    config = {"activities": [{"name": "counts", "command": "stat", "event": "task-clock", "all_cpus": True, "interval_ms": 10}]}
    folder = images.bundle(tmp_path / "run", root, config, change=UNLIMITED)
    ends = []
    for times in range(20):
        with Nhmtap(folder, NAME) as container:
            container.until(lambda r: r["type"] == "count" and r["seq"] >= 5 and r["run_id"] not in ends)
            container.runc("kill", NAME, "KILL")
            container.process.wait(timeout=60)
            records = container.records()
            assert container.out.read_text()[-1] == "\n"
        runs = list(dict.fromkeys(r["run_id"] for r in records))
        assert runs[:-1] == ends and len(runs) == times + 1
        ends = runs
    for run in ends:
        seqs = [r["seq"] for r in records if r["run_id"] == run]
        assert seqs == list(range(len(seqs)))


def anonymous_kib(pid):
    """A process's anonymous memory, counted page by page: RssAnon may lag by some pages per CPU."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("Anonymous:")).split()[1])


def test_a_thousand_cgroups_leave_no_descriptor_and_no_memory_behind(tmp_path, cgroup, root):
    """A leak for each cgroup makes memory grow in every round. A growing table adds memory only
    once: removed cgroups are held until their interval ends, when the next ones may exist."""
    path, folder = cgroup
    config = {"activities": [{"name": "counts", "command": "stat", "event": "page-faults", "for_each_cgroup": f"{path}/c*",
                              "interval_ms": 20}]}
    with Nhmtap(images.bundle(tmp_path / "run", root, config, change=UNLIMITED), NAME) as container:
        container.until(lambda r: r["type"] == "start" and r["activity"] == "counts")
        pid, descriptors, memory = container.pid(), [], []
        for first in range(0, 1000, 50):
            for i in range(first, first + 50):
                os.mkdir(f"{folder}/c{i}")
            container.until(lambda r: r["type"] == "target" and r["change"] == "appeared", first + 50)
            for i in range(first, first + 50):
                os.rmdir(f"{folder}/c{i}")
            container.until(lambda r: r["type"] == "target" and r["change"] == "gone", first + 50)
            descriptors.append(len(os.listdir(f"/proc/{pid}/fd")))
            memory.append(anonymous_kib(pid))
        container.end()
    # A descriptor may be open just now for a file that is being read, and that of the hierarchy is opened when a
    # cgroup's path is first looked up. Neither is a leak.
    assert min(descriptors[-5:]) <= min(descriptors[:5]) + 1, descriptors
    settled = memory[len(memory) // 2:]
    assert sum(after > before for before, after in zip(settled, settled[1:])) <= 4, memory
