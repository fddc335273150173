# SPDX-License-Identifier: GPL-2.0-only
"""Guests for the tests. A kind of machine boots when a worker first needs it, and every test gets a fork of
it, so no test depends on the tests before it."""
import collections
import fcntl
import os
import sys
import zlib

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import images
import nehalem
import snapshots
import variation
from guests import (CORE2, KERNELS, LITTLE_KALLSYMS, PAIRS_OF_XEONS, SANDYBRIDGES, WESTMERES, XEONS, forks, late_library,
                    programs, tool)

FURTHER = {further for kind in (KERNELS, WESTMERES, SANDYBRIDGES, XEONS, PAIRS_OF_XEONS) for further in list(kind)[1:]}


def pytest_configure(config):
    config.addinivalue_line("markers", "modules(name, ...): the guest's kernel has them, beside msr")


@pytest.fixture(scope="session", autouse=True)
def snapshots_of_the_tests():
    """What `run` leaves stays in the build folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", nehalem.build_folder() + "/cache")
        yield


# So many kinds of machines a worker keeps: each takes up to 600 MB, and CI's workers have some thirty kinds in all.
KEPT = 5


@pytest.fixture(scope="session")
def booted(snapshots_of_the_tests):
    """Guests that are only forked from, by their kind and the modules in their kernel. Those of the kinds that were not used for
    longest are ended; a kind is kept while `held` counts forks of it, which would end, too."""
    kinds, held = {}, collections.Counter()
    nhmtap = [tool(), tool() + "-known", late_library("libseccomp")] if tool() else []

    def boot(machine, anew=False):
        """One worker boots it, and the others continue from its snapshot, as does the next run of the tests."""
        os.makedirs(snapshots.folder(), exist_ok=True)
        with open(f"{snapshots.folder()}/{zlib.crc32(repr(machine).encode()):08x}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            guest = nehalem.Guest(machine, snapshot=not anew and not variation.NUMBER)
        guest.run(LITTLE_KALLSYMS, paranoid=-1)
        return guest

    def end(machines):
        for machine in machines:
            for guest in reversed(kinds.pop(machine).values()):
                guest.close()

    def get(modules=(), add=(), **kind):
        machine = variation.machine(nehalem.Machine(add=(*programs(), *nhmtap, *add), rounded=True, **kind))
        end([other for other in kinds if other != machine and not held[other]][:max(0, len(kinds) - KEPT)])
        guests = kinds[machine] = kinds.pop(machine, None) or {None: boot(machine)}
        # The kernel takes longer to load a module than most tests take.
        modules = ("msr", *modules)
        if modules not in guests:
            guests[modules] = guests[None].fork()
            for module in modules:
                guests[modules].run(f"insmod /lib/modules/{module}.ko")
        return guests[modules]

    get.boot, get.held = boot, held
    yield get
    end([*kinds])


@pytest.fixture
def machines(request, booted):
    modules = request.node.get_closest_marker("modules")
    with forks(booted, request.node.nodeid, modules=modules.args if modules else ()) as get:
        yield get


@pytest.fixture
def guest(machines):
    """A machine with one core."""
    return machines()


@pytest.fixture(params=KERNELS)
def any_kernel(request, machines):
    """A machine with one core, on each kernel."""
    return machines(kernel=request.param)


@pytest.fixture
def two_cores(machines):
    return machines(cores=2)


@pytest.fixture
def siblings(machines):
    """Two cores with two threads each: CPUs 0 and 1, 2 and 3."""
    return machines(cores=2, threads=2)


@pytest.fixture
def two_packages(machines):
    """Two packages of one core each."""
    return machines(packages=2)


@pytest.fixture(params=WESTMERES)
def westmere(request, machines):
    """Each Westmere; `model` says which it is."""
    bench = machines(**WESTMERES[request.param])
    bench.model = request.param
    return bench


@pytest.fixture
def sandybridge(machines):
    """Two cores of one thread each."""
    return machines(**SANDYBRIDGES["sandybridge"])


@pytest.fixture
def sandybridge_ep(machines):
    """Two packages, on the later kernel."""
    return machines(**SANDYBRIDGES["sandybridge-ep"])


@pytest.fixture
def sandybridge_threads(machines):
    """One core of two threads, on the later kernel."""
    return machines(model="sandybridge", threads=2, kernel="6.12")


@pytest.fixture
def core2(machines):
    return machines(**CORE2)


@pytest.fixture
def xeon_7400(machines):
    return machines(**XEONS["xeon_7400"])


@pytest.fixture
def xeon_7100(machines):
    return machines(**XEONS["xeon_7100"])


@pytest.fixture
def xeons_7400(machines):
    return machines(**PAIRS_OF_XEONS["xeons_7400"])


@pytest.fixture(params=XEONS)
def xeon(request, machines):
    return machines(**XEONS[request.param])


@pytest.fixture(params=PAIRS_OF_XEONS)
def xeons(request, machines):
    """Two packages; `model` says of which."""
    bench = machines(**PAIRS_OF_XEONS[request.param])
    bench.model = request.param
    return bench


@pytest.fixture
def isolated(machines):
    """A machine whose kernel has its own page tables (page table isolation)."""
    return machines(cmdline="pti=on rodata=on")


@pytest.fixture
def pushing(machines):
    """A machine with libcurl, so that nhmtap can push to a server."""
    return machines(add=(late_library("libcurl-gnutls"),))


@pytest.fixture
def mediated(machines):
    """A machine with the profile for AppArmor, which Debian's kernels enforce, and the program that loads it."""
    return machines(add=(*map(late_library, ("libcurl-gnutls", "libmicrohttpd")), f"{tool()}:/usr/bin/nhmtap",
                         f"{tool()}-known:/usr/lib/nhmtap/nhmtap-known", "/sbin/apparmor_parser:/sbin/apparmor_parser", "/usr/bin/setpriv",
                         "/etc/apparmor.d/abi:/etc/apparmor.d/abi", f"{images.FOLDER}/apparmor:/etc/apparmor.d/nhmtap"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that fails in a guest shows the guest's console."""
    outcome = yield
    report = outcome.get_result()
    machines = getattr(item, "funcargs", {}).get("machines")
    if report.failed and machines:
        for guest in machines.guests:
            kind = {k: v for k, v in vars(guest.machine).items() if k != "add"}
            report.sections.append((f"console of {kind}", guest.console()))


# The fixtures that say what kind of machine a test needs. Under xdist's
# `--dist loadgroup` each kind but the default one boots in one worker only.
KINDS = ("core2", "isolated", "mannered", "mediated", "netburst", "perfmon_1", "perfmon_2", "perfmon_3", "pushing", "sandybridge",
         "sandybridge_ep", "sandybridge_threads", "siblings", "two_cores", "two_packages", "xeon_7100", "xeon_7400",
         "xeons_7400")


# The fixtures of processors other than a Nehalem.
OTHERS = {"core2", "netburst", "perfmon_1", "perfmon_2", "perfmon_3", "sandybridge", "sandybridge_ep", "sandybridge_threads",
          "westmere", "xeon", "xeon_7100", "xeon_7400", "xeons", "xeons_7400"}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if OTHERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.thorough)
    for item in (i for i in items if hasattr(i, "callspec")):
        if any(value in FURTHER for value in item.callspec.params.values() if isinstance(value, str)):
            item.add_marker(pytest.mark.thorough)
    for item in (i for i in items if {"booted", "mannered"} & set(getattr(i, "fixturenames", ()))):
        kind = [k for k in KINDS if k in item.fixturenames]
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        kind += [k for k in (*KERNELS[1:], *WESTMERES, *XEONS, *PAIRS_OF_XEONS) if k in parameters]
        if kind:
            item.add_marker(pytest.mark.xdist_group("-".join(kind)))
