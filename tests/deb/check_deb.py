# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages. `make check-deb` runs this as root, with network access, and takes some minutes. The
packages are built twice, checked by lintian, and installed, used and purged in a separate Debian system."""
import filecmp
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess

import pytest

DEB = os.environ["NHMTAP_DEB"]  # built by make deb
AGAIN = os.environ["NHMTAP_DEB_AGAIN"]  # built in another place at another time
SUITE = subprocess.run([". /etc/os-release; echo $VERSION_CODENAME"], shell=True, capture_output=True, text=True,
                       check=True).stdout.strip()
PACKAGES = ("nhmtap", "nhmtap-doc", "python3-nhmtap")
SERVICE = "lib/systemd/system/nhmtap.service"

# These change when any package is installed and removed: apt's and dpkg's state, logs, caches, backups of
# /etc/passwd.
CHANGES_WITH_ANY = re.compile(r"(proc|sys|dev|tmp|root|run|var/cache|var/log/(apt|dpkg\.log|alternatives\.log)|var/lib/(apt|dpkg)"
                              r"|etc/(passwd|group|shadow|gshadow)-)(/|$)")

# Mounts what a chroot needs, in a mount namespace that ends with the command.
ENTER = """set -e
for folder in dev sys; do mount --rbind /$folder "$0/$folder"; done
mount -t proc proc "$0/proc"
exec chroot "$0" "$@"
"""


# No variable of this run, such as NHMTAP, reaches the tested system.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def succeeded(done):
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def run(*command, **settings):
    return succeeded(subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, **settings))


def built(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith((".deb", ".dsc", ".tar.xz")))


def deb(package):
    return os.path.join(DEB, next(name for name in built(DEB) if name.startswith(package + "_") and name.endswith(".deb")))


class Chroot:
    """A Debian system in a folder."""

    def __init__(self, path):
        self.path = path

    def run(self, *command):
        """Runs the command as root in a pid namespace of its own, and returns its output."""
        return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", ENTER, self.path, *command,
                   env=ENVIRONMENT)

    def put(self, *paths):
        """Copies files into /tmp, and returns their paths there."""
        for path in paths:
            shutil.copy(path, os.path.join(self.path, "tmp"))
        return ["/tmp/" + os.path.basename(path) for path in paths]

    def state(self):
        """Returns the kind, owner, mode and content of every file."""
        found = {}
        for folder, folders, names in os.walk(self.path):
            inside = os.path.relpath(folder, self.path)
            folders[:] = [name for name in folders if not CHANGES_WITH_ANY.match(os.path.normpath(os.path.join(inside, name)))]
            for name in folders + names:
                path = os.path.join(folder, name)
                known = os.lstat(path)
                if CHANGES_WITH_ANY.match(os.path.normpath(os.path.join(inside, name))):
                    continue
                content = ""
                if stat.S_ISREG(known.st_mode):
                    with open(path, "rb") as file:
                        content = hashlib.sha256(file.read()).hexdigest()
                elif stat.S_ISLNK(known.st_mode):
                    content = os.readlink(path)
                found[os.path.relpath(path, self.path)] = (known.st_mode, known.st_uid, known.st_gid, content)
        return found


@pytest.fixture(scope="session")
def debian(tmp_path_factory):
    """A system with everything that the packages depend on. It is made once and copied."""
    kept = os.environ["NHMTAP_CHROOT"]
    if not os.path.exists(kept):
        new = kept + ".new"
        shutil.rmtree(new, ignore_errors=True)
        run("debootstrap", "--variant=minbase", SUITE, new)
        # The machine's own devices are mounted there. A copy that reads /dev/full would never end.
        shutil.rmtree(os.path.join(new, "dev"))
        os.mkdir(os.path.join(new, "dev"))
        os.rename(new, kept)
    chroot = Chroot(str(tmp_path_factory.mktemp("debian") / "root"))
    run("cp", "-a", kept, chroot.path)
    needed = ", ".join(run("dpkg-deb", "-f", deb(package), "Pre-Depends", "Depends").replace("Pre-Depends:", "").replace(
        "Depends:", "").strip().replace("\n", ",") for package in PACKAGES)
    wanted = [one.strip() for one in needed.split(",") if one.strip() and not re.match(r"\s*(python3-)?nhmtap\b", one)]
    chroot.run("apt-get", "-qq", "update")
    chroot.run("apt-get", "-qq", "satisfy", "-y", "--no-install-recommends", ", ".join(wanted))
    return chroot


@pytest.fixture(scope="session")
def before(debian):
    return debian.state()


@pytest.fixture(scope="session")
def installed(debian, before):
    """Installs the packages with dpkg alone, so a missing dependency is an error."""
    debian.run("dpkg", "-i", *debian.put(*map(deb, PACKAGES)))
    return debian


def test_two_builds_are_the_same_to_the_bit():
    assert built(DEB) == built(AGAIN) and len(built(DEB)) == 6
    assert filecmp.cmpfiles(DEB, AGAIN, built(DEB), shallow=False) == (built(DEB), [], [])


def test_lintian_finds_no_error_and_nothing_to_warn_of():
    changes = next(name for name in os.listdir(DEB) if name.endswith(".changes"))
    assert run("lintian", "--allow-root", "--fail-on", "error,warning", os.path.join(DEB, changes)) == ""


def test_the_program_measures_and_names(installed):
    count, = (record for record in map(json.loads, installed.run("nhmtap", "stat", "-e", "page-faults", "--", "true").splitlines())
              if record["type"] == "count")
    assert count["value"] > 10
    profile = installed.run("nhmtap", "profile", "-e", "page-faults", "-c", "1", "--", "ls", "/")
    assert '"symbol":' in profile


def test_the_known_program_has_kept_the_symbols_that_the_selftest_reads(installed):
    assert '"type":"end"' in installed.run("nhmtap", "doctor", "--selftest")


def test_the_version_is_the_packages(installed):
    told = json.loads(installed.run("nhmtap", "--version", "--json"))
    assert told["version"] == run("dpkg-deb", "-f", deb("nhmtap"), "Version").strip()
    identified = run("dpkg-deb", "-f", deb("nhmtap-dbgsym"), "Build-Ids").split()
    assert told["build_id"] in identified


def test_the_python_package_finds_the_program(installed):
    script = "import nhmtap; print(nhmtap.__version__)"
    assert installed.run("python3", "-c", script).strip() == run("dpkg-deb", "-f", deb("python3-nhmtap"), "Version").strip()
    assert "nhmtap" in installed.run("python3", "-m", "pytest", "--help")


def test_the_service_is_there_and_does_not_run_by_itself(installed):
    installed.run("systemd-analyze", "verify", "--man=no", "nhmtap.service")
    assert not os.path.lexists(os.path.join(installed.path, "etc/systemd/system/multi-user.target.wants/nhmtap.service"))
    assert "nhmtap" in installed.run("id", "nhmtap")


def test_what_the_service_runs_needs_no_more_than_its_user_and_its_capabilities(installed):
    with open(os.path.join(installed.path, SERVICE), encoding="utf-8") as file:
        unit = dict(line.strip().split("=", 1) for line in file if "=" in line and line[0] != "#")
    keep = ",".join(["-all"] + ["+" + name[4:].lower() for name in unit["AmbientCapabilities"].split()])
    installed.run("install", "-d", "-o", unit["User"], "-g", unit["Group"], "-m", unit["LogsDirectoryMode"],
                  "/var/log/" + unit["LogsDirectory"])
    # Debian's python3 exports its functions, so they have names without debug symbols.
    busy = "import os\nfor _ in range(5000): os.stat('/usr'); sorted(map(str, range(1000)))"
    installed.run("setpriv", "--reuid", unit["User"], "--regid", unit["Group"], "--clear-groups", "--inh-caps", keep,
                  "--ambient-caps", keep, "--bounding-set", keep, "--no-new-privs", *unit["ExecStart"].split(), "--",
                  "python3", "-c", busy)
    with open(os.path.join(installed.path, "var/log/nhmtap/records.jsonl"), encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    assert [record["type"] for record in records if record["type"] == "error"] == []
    codes = [entry["code"] for record in records if record["type"] == "profile" for entry in record["entries"]]
    assert any("symbol" in code and code.get("module") == "[kernel]" for code in codes), codes
    assert any("symbol" in code and code.get("module", "").startswith("/") for code in codes), codes


def test_purged_it_leaves_nothing_behind(installed, before):
    installed.run("dpkg", "--purge", *PACKAGES)
    after = installed.state()
    assert {path: after[path] for path in after if after[path] != before.get(path)} == {}
    assert [path for path in before if path not in after] == []


# This test is the last one, because autopkgtest installs more packages.
def test_the_tests_that_come_with_it_pass(debian):
    changes = os.path.join(DEB, next(name for name in os.listdir(DEB) if name.endswith(".changes")))
    assert "FAIL" not in run("unshare", "--mount", "sh", "-c", """set -e
        mount --bind "$0" "$0"; for folder in dev sys; do mount --rbind /$folder "$0/$folder"; done
        mount -t proc proc "$0/proc"
        autopkgtest --no-auto-control "$1" -- chroot "$0" """, debian.path, changes, env=ENVIRONMENT)
