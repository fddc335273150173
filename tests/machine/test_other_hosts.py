# SPDX-License-Identifier: GPL-2.0-only
"""What a host has otherwise than the one that made a baseline, as far as one host can be another one: where its kernel puts a
process's parts, what it says of itself and allows, whose process it is, and how files are stored. No count depends on it."""
import json
import os
import shutil
import subprocess
import sys

import pytest

import known
import nehalem
from guests import TALLY

COUNT = f"""
import json, nehalem, sys
tools, model = json.loads(sys.argv[1])
with nehalem.Guest(nehalem.Machine(add=tools, **model), snapshot=True) as guest:
    said = guest.run("{TALLY} chase memory; {TALLY} sh -c 'seq 2000 | sort -r | md5sum'; cat /proc/uptime /proc/interrupts", paranoid=-1)
    assert said.status == 0, said
    print(json.dumps([guest.from_snapshot, said.stdout]))
"""
LIMITS = "--stack=unlimited --nofile=64 --memlock=0"
HOSTS = {  # words before the command, and more of the environment
    "another layout of processes": ("setarch -L -R", {}),
    "three gigabytes a process": ("setarch -3 -X", {}),
    "a kernel of another name": ("setarch --uname-2.6", {}),
    "one CPU": ("taskset -c 0", {}),
    "other limits": (f"prlimit {LIMITS}", {}),
    "namespaces": ("unshare --pid --fork --mount-proc --net --ipc --uts --time --boottime 100000000", {}),
    "no capabilities": ("setpriv --bounding-set=-all --inh-caps=-all --no-new-privs", {}),
    "another language and a large environment": ("", {"LANG": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati", "FILLER": "x" * 100000}),
    "a C library that is told of fewer instructions": ("", {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-SSE4_2", "MALLOC_PERTURB_": "165"}),
}
MODELS = [{}, pytest.param({"model": "westmere", "cores": 2}, marks=pytest.mark.thorough),
          pytest.param({"model": "sandybridge", "cores": 2}, marks=pytest.mark.thorough)]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.get("model", "ep"))
def counted(request, tmp_path_factory):
    """A function that counts as another host would, and what is counted here after the boot that leaves a snapshot."""
    cache = tmp_path_factory.mktemp("cache")

    def count(words="", environment=()):
        command = [*words.split(), sys.executable, "-c", COUNT, json.dumps([[known.path("tally"), known.path("chase")], request.param])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={
            "PATH": os.environ["PATH"], "PYTHONPATH": nehalem.HERE, "XDG_CACHE_HOME": str(cache), **dict(environment)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    from_snapshot, said = count()
    assert not from_snapshot
    return count, said


@pytest.mark.parametrize("host", HOSTS)
def test_another_host_continues_from_a_snapshot_and_counts_the_same(counted, host):
    count, here = counted
    assert count(*HOSTS[host]) == [True, here]


FILES = 300
BACKWARDS = '(cd "$1" && find . | sort -r | tar --posix --no-recursion -T - -c) | tar -C /mnt -xp'
STORED = {  # how a folder comes to be the guest's /mnt
    "in order": 'mount --bind "$2" /mnt; tar -C "$1" --posix --sort=name -c . | tar -C /mnt -xp',
    "backwards": f'mount --bind "$2" /mnt; {BACKWARDS}',
    "backwards on another file system": f"mount -t tmpfs -o mode=755 none /mnt; {BACKWARDS}",
}


def test_files_count_the_same_however_they_were_copied_and_stored(tmp_path):
    """Beside their names, data and dates, which the guest has from here. /mnt, since other names in /tmp would come and go."""
    files = tmp_path / "files"
    (files / "below").mkdir(parents=True)
    for number in range(FILES):
        (files / "below" / str(number)).write_bytes(os.urandom(37 * number))
    (files / "link").symlink_to("below/7")
    shutil.copy(known.path("tally"), files / "tally")
    said = {}
    for number, (stored, commands) in enumerate(STORED.items()):
        store = tmp_path / f"store{number}"
        store.mkdir(mode=0o755)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-euc", f'{commands}; cd /mnt; shift 2; exec "$@"', "sh", str(files), str(store), sys.executable,
             nehalem.HERE + "/run", "--here", "--user", "root", "--", *f"./{TALLY} sh -c".split(),
             "cat below/* link | md5sum; ls -lR; find . -newer link"],
            env={"PATH": "/usr/bin:/bin", "HOME": "/root", **{k: v for k, v in os.environ.items() if k.startswith(("NHM_", "XDG_"))}},
            capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said[stored] = done.stdout.splitlines()
    *told, users, _, kernels, _ = said["in order"]
    assert any(line.endswith(f" {FILES - 1}") for line in told) and int(users.split()[0]) and int(kernels.split()[0])
    assert said == dict.fromkeys(STORED, said["in order"])
