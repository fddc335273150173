# SPDX-License-Identifier: GPL-2.0-only
"""The parts of the kernel's source that tests use, from Debian's package of it."""
import fcntl
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("tools/perf/pmu-events/arch/x86/*", "tools/testing/selftests/perf_events/*", "tools/testing/selftests/kselftest*.h")


def version(tarball):
    return [int(number) for number in re.findall(r"\d+", tarball)]


def tools():
    """Returns the folder tools/ of the newest kernel. To read its tarball takes 12 s of CPU time, so what was unpacked
    is kept beside make's libperf, which all builds share."""
    tarball = max((name for name in os.listdir("/usr/src") if re.fullmatch(r"linux-source-[\d.]+\.tar\.xz", name)), key=version)
    build = os.environ.get("NHMTAP_BUILD", os.path.join(HERE, "../../build"))
    name = tarball.removesuffix(".tar.xz")
    folder = f"{os.path.dirname(os.environ.get('NHMTAP_LIBPERF') or f'{build}/libperf')}/{name}"
    with open(f"{folder}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(folder):
            os.makedirs(f"{folder}.new", exist_ok=True)
            subprocess.run(["tar", "xf", f"/usr/src/{tarball}", "-C", f"{folder}.new", "--strip-components=1", "--wildcards",
                            *(f"{name}/{part}" for part in PARTS)], check=True)
            os.rename(f"{folder}.new", folder)
    return f"{folder}/tools"
