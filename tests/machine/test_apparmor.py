# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap under its AppArmor profile: the kernel enforces it, allows what nhmtap does, and denies everything else."""
import json
import re

import otlp
import pytest

from records import parse

# For a subshell, which becomes the program under a profile: "exec" of /proc/PID/attr, as aa-exec(1) uses it. Like a
# container, nhmtap can't get capabilities that its profile does not give: else each exec would change its rights.
UNDER = """
under() { echo "exec $1" > /proc/self/attr/exec; shift; exec "$@"; }
confined() {
    exec /opt/setpriv --inh-caps -all --bounding-set -all,+bpf,+perfmon,+syslog,+sys_ptrace,+dac_read_search \
        sh -c 'echo "exec nhmtap" > /proc/self/attr/exec; exec /usr/bin/nhmtap "$@"' sh "$@"
}
"""
# A profile like those that Docker and containerd give containers: processes are seen by those of the same profile.
APPLICATION = """
profile application flags=(attach_disconnected,mediate_deleted) {
  file,
  signal,
  ptrace (trace, read, tracedby, readby) peer=application,
}
"""


@pytest.fixture(name="node")
def node_with_the_profile(mediated):
    done = mediated.run(f"""
        mount -t securityfs none /sys/kernel/security
        echo '{APPLICATION}' > /run/application
        apparmor_parser -r -K /etc/apparmor.d/nhmtap /run/application
        cat /sys/kernel/security/apparmor/profiles
        ifconfig lo up
        mkdir -p /var/log/nhmtap /run/nhmtap""")
    assert "nhmtap (enforce)" in done.stdout and "application (enforce)" in done.stdout, str(done)
    return mediated


def denied(done):
    """What the kernel has denied, of the text that `dmesg` has left in the standard error."""
    return [dict(re.findall(r'(\w+)="?([^" ]*)', line)) for line in done.stderr.splitlines() if 'apparmor="DENIED"' in line]


def confined(node, command, status=0):
    """Runs a command with nhmtap as `confined`. Nothing may be denied if it is to succeed."""
    done = node.run(f"dmesg -c > /dev/null; {UNDER}\n{command}\nstatus=$?; dmesg >&2; exit $status", paranoid=2)
    assert done.status == status, str(done)
    assert status or not denied(done), str(done)
    return done


COMMANDS = {
    "stat": "stat -a -e instructions,task-clock --duration 0.1",
    "profile": "profile -a -F 500 -g --duration 0.2",
    "mem": "mem -a -c 100 --duration 0.1",
    "branch": "branch -a -e branches:u -c 100 --duration 0.1",
    "offcore": "offcore -a --request DEMAND_DATA_RD --response LOCAL_DRAM --duration 0.1",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_whole_cpus_are_measured_with_the_capabilities_of_the_profile(node, command):
    records = parse(confined(node, f"(confined {COMMANDS[command]} --format json)").stdout)
    start = next(r for r in records if r["type"] == "start")
    assert "CAP_SYS_ADMIN" not in start["capabilities"] and "capabilities_missing" not in start
    if command in ("profile", "mem", "branch"):
        assert sum(r["samples"]["aggregated"] for r in records if "samples" in r and r["type"] == command) > 0


def test_the_selftest_may_run_its_program(node):
    """It tries to read registers, too, which takes a capability that the profile does not give."""
    done = node.run(f"dmesg -c > /dev/null; {UNDER} (confined doctor --selftest --format json); dmesg >&2", paranoid=2)
    assert {one["operation"] for one in denied(done)} <= {"capable"}, str(done)
    assert any(r["type"] == "selftest" and r["verdict"] == "passed" for r in parse(done.stdout)), str(done)


# Profiles a program that runs already.
BESIDE = """
({before} /opt/bursts burst 500 60000 1) &
until [ "$(cat /proc/$!/comm)" = bursts ]; do :; done
(confined profile -a -e r01c0:u -c 10007 --by comm,symbol --duration 0.3 --format json)
"""


def symbols(done, comm):
    return {entry["code"].get("symbol") for r in parse(done.stdout) if r["type"] == "profile" for entry in r["entries"]
            if entry["comm"] == comm}


def test_code_of_others_is_named_unless_their_own_profile_hides_them(node):
    """AppArmor asks both sides of ptrace: ptrace (read) of the one that looks, (readby) of the other one."""
    assert symbols(confined(node, BESIDE.format(before="exec")), "bursts") - {None}
    hidden = node.run(f"{UNDER} {BESIDE.format(before='under application')}", paranoid=2)
    assert symbols(hidden, "bursts") == {None}, str(hidden)


# Takes each request of HTTP and answers that it is well.
ANSWER = r"""
n=0
while read -r line; do
    line=${line%?}
    case $line in [Cc]ontent-[Ll]ength:*) n=${line#*: };; "") break;; esac
done
head -c "$n" > /tmp/body.new && mv /tmp/body.new "/tmp/body$$"
printf 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
"""
CONFIG = {
    "listen": "tcp:127.0.0.1:9464",
    "outputs": [{"path": "/var/log/nhmtap/records"}, {"path": "listen", "format": "openmetrics"},
                {"path": "http://127.0.0.1:4318/v1/metrics", "format": "otlp"}],
    "activities": [{"name": "counts", "command": "stat", "event": "page-faults", "all_cpus": True, "interval_ms": 100},
                   {"name": "ticks", "command": "profile", "all_cpus": True, "interval_ms": 100, "freq": 500}]}


def test_a_session_listens_pushes_and_writes_to_its_folder(node):
    done = confined(node, f"""
        cat > answer <<'END'\n{ANSWER}\nEND
        echo '{json.dumps(CONFIG)}' > /run/nhmtap/config.json
        nc -ll -p 4318 -e sh /tmp/answer &
        (confined run /run/nhmtap/config.json) &
        pid=$!
        until wget -q -O page http://127.0.0.1:9464/metrics 2> wget && grep -q nhmtap_events_total page; do chase memory; done
        kill $pid
        wait $pid || exit
        for body in body*; do zcat < $body; echo; done > bodies
        cat page bodies /var/log/nhmtap/records""")
    lines = done.stdout.splitlines()
    assert any(line.startswith('nhmtap_events_total{activity="counts"') for line in lines)
    sent = [line for line in lines if line.startswith('{"resourceMetrics"')]
    records = parse("".join(line + "\n" for line in lines if line.startswith('{"type"')))
    assert otlp.total(sent, "nhmtap.events") == sum(r["value"] for r in records if r["type"] == "count") > 0


def test_what_is_not_listed_is_denied(node):
    for place in ("/tmp/elsewhere", "/var/log/other", "/etc/passwd"):
        done = confined(node, f"(confined stat -a -e task-clock --duration 0.01 -o {place})", status=1)
        assert "Permission denied" in done.stderr
        assert place in [one.get("name") for one in denied(done)], str(done)
    done = confined(node, "(confined stat -e task-clock --format json -- /bin/busybox true)", status=126)
    assert [(one["operation"], one["name"]) for one in denied(done)] == [("exec", "/bin/busybox")]
