# SPDX-License-Identifier: GPL-2.0-only
"""The emulated Nehalem as a Python object.

    with Guest(Machine(cores=2)) as guest:
        print(guest.run("perf stat -e instructions:u true").stderr)

A guest boots once and runs commands one after the other. It is stopped between
commands, so what a command counts does not depend on how long the host took.
fork() makes another guest at once that continues from the same state, so a count
need not depend on earlier commands either.
"""
import errno
import fcntl
import os
import select
import struct
import sys
import time

import light
import snapshots
from guard import remove_folder
from light import signal

# A machine that continues from a snapshot starts in some hundredths of a second. So what only other runs need is
# imported where it is needed, and some modules are avoided that take as long to import as all others together.

HERE = os.path.dirname(os.path.abspath(__file__))


def table_of_models():
    """{model: the rest of its row} of src/nhm/nhm_models.inc."""
    with open(os.path.join(HERE, "src/nhm/nhm_models.inc"), encoding="utf-8") as table:
        rows = [line[len("NHM_MODEL("):].partition(",") for line in table if line.startswith("NHM_MODEL(")]
    return {name: rest for name, _, rest in rows}


def gigahertz(brand):
    """By the brand string, as on hardware; the models that are none have no clock of their own."""
    before, found, _ = brand.partition("GHz")
    return float(before.replace('"', " ").split()[-1]) if found else 2


MODELS = table_of_models()
GIGAHERTZ = {name: gigahertz(rest) for name, rest in MODELS.items()}
USERS = {"root": (0, "/root"), "user": (1000, "/home/user"), "nobody": (65534, "/tmp")}
IPS_LEAST = 10000000  # the kernel has 250 ticks a second, each of some thousands of instructions
NULL = os.makedev(1, 3)
OUTPUT, FILES = 0, 2  # streams of the guest's channel
TAIL = 1 << 16  # bytes of the end of a console or a log
# How the emulator says that the machine restarts: a triple fault, or the BIOS a second time.
RESTARTS = ("exception with no resolution", "the BIOS has started again")
ITS_END = 5  # seconds that an emulator may take to end when it has closed its channel
GLANCE = 0.5  # seconds between two looks at how much the guest has sent
CONSOLE, OWN_OUTPUT = 4, 5  # places among the emulator's files
ORDER = b"order 6\0"  # the form of what here.py tells src/guest/here.c
TREE = 16 << 30  # where the guest finds the host's files, beyond all memory
RESIDENT = 2048  # MiB that Bochs holds at most at a time; it swaps the rest to a file

# Of the host's processor, for the C library, which chooses its functions by what there is. Names that it does not know
# it passes over.
LEFT_OUT = (
    "-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX_Fast_Unaligned_Load,-FMA,-FMA4,-BMI1,-BMI2,-LZCNT,"
    "-MOVBE,-RTM,-ERMS,-XSAVE,-XSAVEC"
)

FIRMWARE = ("BIOS-bochs-latest", "vgabios-stdvga.bin")

BOCHSRC = """\
memory: guest={memory}, host={resident}
cpu: model=corei5_lynnfield_750, count={cpus}:1:1, ips={frequency}, reset_on_triple_fault=0, ignore_bad_msrs=1
romimage: file={firmware[0]}, options=fastboot
vgaromimage: file={firmware[1]}
optromimage1: file={rom}, address=0xd0000
clock: sync=none, time0={date}
com1: enabled=1, mode=file, dev=/proc/self/fd/{console}
display_library: nogui
log: {folder}/log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
speaker: enabled=0
"""

# No mitigations and no address randomisation: they cost time and make addresses unpredictable.
# The NMI watchdog would take a counter. Programs may access memory through /dev/mem. Idle
# processors halt: from MWAIT they return at once, and then idle at the others' expense.
# The last lines save half of the boot: checks of the kernel's page tables, of the timer and
# of ftrace's records (it looks each up in kallsyms), pages cleared twice, the names of
# constants in tracepoints' formats, entropy from the jitter of a processor that has
# none, keys for modules whose signatures are not checked here, files about each slab, and
# two things that nothing here needs.
CMDLINE = (
    "console=ttyS0,115200 quiet mitigations=off nokaslr nmi_watchdog=0 iomem=relaxed tsc=reliable "
    "cryptomgr.notests panic=-1 idle=halt "
    "rodata=off init_on_alloc=0 no_timer_check initcall_blacklist=init_blk_tracer,"
    "cubictcp_register,ftrace_check_for_weak_functions,trace_eval_init,jent_mod_init,"
    "load_system_certificate_list,slab_sysfs_init"
)


class Trouble(Exception):
    """The machine could not do what it was asked to. `run` exits with `status`."""

    status = 125


class BadRequest(Trouble):
    status = 120


class NotBuilt(Trouble):
    status = 121


class NoKernel(Trouble):
    status = 122


class Panicked(Trouble):
    status = 123


class OutOfTime(Trouble):
    status = 124


class MissingFile(Trouble):
    status = 119


class NoSnapshot(Trouble):
    """There is none of a machine that has been told this."""


class Terminated(SystemExit):
    """By a signal. It is no error, which something on the way might take."""

    def __init__(self, number):
        super().__init__(128 + number)
        self.number = number
        self.words = "the machine was ended, and COMMAND with it"

    def __str__(self):
        return f"{light.name_of_signal(self.number)}: {self.words}"


class Choices:
    """Values by name that do not change, each with a default."""

    def __init__(self, **given):
        unknown = given.keys() - self.__annotations__.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        self.__dict__.update({name: given.get(name, getattr(type(self), name)) for name in self.__annotations__})

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__}.{name} does not change")

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash(tuple(vars(self).values()))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def but(self, **other):
        """The same with other values of some."""
        return type(self)(**{**vars(self), **other})


class Machine(Choices):
    """What can be chosen about the machine. Two equal machines behave alike."""

    packages: int = 1
    cores: int = 1  # of a package
    threads: int = 1  # of a core
    memory: int = 1024  # MiB; below 512 Linux has no transparent huge pages
    kernel: str = "6.1"  # one that was built, or a file: bzImage or vmlinux
    cmdline: str = ""
    model: str = "ep"  # of src/nhm/nhm_models.inc
    perfmon: str = ""  # CPUID.0AH: "EAX,EBX,EDX"; "": the model's
    microcode: int = 0  # its revision; 0: the model's
    firmware: int = 0  # what it leaves in IA32_FIXED_CTR_CTRL for the kernel to find
    date: int = 1700000000  # the kernel mixes it into its random numbers
    # Instructions in a second of the guest's clock; 0: the model's own clock, whose ticks are cycles.
    ips: int = 200000000
    add: tuple = ()  # HOSTPATH[:GUESTPATH], by default into /opt
    libraries: bool = True  # bring the shared libraries of what is added
    tree: int = 0  # MiB of addresses for the host's files; 0: the guest does not see them
    rounded: bool = False  # pad programs with zeros to a round size: one that grows a little boots alike

    @property
    def frequency(self):
        """Ticks of the TSC in a second."""
        return self.ips or round(GIGAHERTZ.get(self.model, 2) * 1e9)

    @property
    def cpus(self):
        return self.packages * self.cores * self.threads


class Settings(Choices):
    """What can be chosen anew for each command."""

    latency: str = ""  # of loads: L1,L2,L3,SNOOP,HITM,DRAM,REMOTE,FORWARD in cycles
    remote_from: int = 2**64 - 1  # from this physical address on memory is package 1's
    prefetch: bool = False  # the L2 prefetcher works
    skid: int = 0  # instructions between a counter's overflow and its interrupt
    tag_all_loads: bool = False  # measure the latency of every load, not of one in 16

    def __str__(self):
        given = {k: int(v) if isinstance(v, bool) else v for k, v in vars(self).items() if v != ""}
        return " ".join(f"{k}={v}" for k, v in given.items())


class Result:
    """What a command left behind."""

    def __init__(self, command, status, stdout, stderr):
        self.command = command
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    def __str__(self):
        return f"{self.command}\nstatus {self.status}\n{self.stdout}{self.stderr}"


def build_folder():
    """Of the project that this folder is a part of. A copy of the folder elsewhere has its own."""
    own = "../../build/machine" if HERE.endswith("/user/machine") else "built"
    return os.path.abspath(os.environ.get("NHM_BUILD") or os.path.join(HERE, own))


def kernels(build=None):
    """The names of the kernels that were built."""
    folder = (build or build_folder()) + "/kernel"
    found = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(k for k in found if os.path.exists(f"{folder}/{k}/boot.json"))


def make_folder():
    """For nobody else, where temporary files are."""
    for _ in range(100):
        path = f"{os.environ.get('TMPDIR') or '/tmp'}/nehalem.{os.urandom(6).hex()}"
        with light.suppress(OSError):
            os.mkdir(path, 0o700)
            return os.path.abspath(path)
    import tempfile

    return tempfile.mkdtemp(prefix="nehalem.")


class Process:
    """A process that may be another one's child, with the methods of subprocess.Popen that a guest
    uses."""

    def __init__(self, pid):
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        self.status = 0  # of waitpid(2), once it has ended and was a child

    def poll(self, timeout=0):
        """Not None when it has ended."""
        return 0 if self.fd is None or select.select([self.fd], [], [], timeout)[0] else None

    def kill(self):
        with light.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGKILL)

    def wait(self):
        self.poll(None)
        os.close(self.fd)
        self.fd = None
        with light.suppress(ChildProcessError):
            self.status = os.waitpid(self.pid, 0)[1]


def start(command, files, env, output, new_session):
    """Starts a program that has these descriptors, and no input."""
    closed = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and int(fd) not in files]
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, output, fd) for fd in (1, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in files]  # the new program keeps it
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in closed if is_kept(fd)]
    return Process(os.posix_spawn(command[0], command, env, file_actions=actions, setsid=new_session))


def is_kept(fd):
    """Whether a new program would have this descriptor."""
    with light.suppress(OSError):
        return os.get_inheritable(fd)
    return False


class Guard:
    """Another process, which removes the folders of this one's guests if this one is killed."""

    def __init__(self):
        reader, self.pipe = os.pipe()
        self.owner = os.getpid()
        self._start(reader)
        os.close(reader)

    def _start(self, reader):
        """A program of its own: a fork would keep the files and the memory of this process, and may not be made beside threads."""
        with open(os.devnull, "w") as null:
            start([sys.executable, "-IS", HERE + "/guard.py", str(reader)], (reader,), {}, null.fileno(), True)

    def watch(self, folder):
        os.write(self.pipe, os.fsencode(folder) + b"\0")

    def dismiss(self):
        os.write(self.pipe, b"done")
        os.close(self.pipe)


def own_guard():
    """Of all guests of this process; one that was forked off has another one."""
    global guard_of_process
    if not guard_of_process or guard_of_process.owner != os.getpid():
        guard_of_process = Guard()
    return guard_of_process


guard_of_process = None


class Guest:
    MOST_HELD = RESIDENT
    kept = False  # its folder outlives it
    snapshot_inputs = None  # the files that its boot read, as a snapshot has them; None: it has no snapshot

    def __init__(
        self, machine=Machine(), stdout=None, stderr=None, build=None, boot_timeout=600, watch=None, snapshot=False,
        paranoid=None, behind="",
    ):  # fmt: skip
        """stdout, stderr: files that receive the guest's output as it is written;
        without them the output is kept for the Result. watch: called with the guest's folder
        as soon as there is one, as that of a Guard (by default this process's own). snapshot: continue from one, or leave one for the next.
        paranoid: perf_event_paranoid from the start. behind: of snapshots.key_of(); then it boots not, but raises NoSnapshot."""
        open_closed()
        self.watch = watch
        self.machine = machine
        self.build = build or build_folder()
        self.paranoid = None
        self.notes = []  # what the user should know about the host's files
        self.inputs = []  # files that the boot reads
        with self._beginning():
            self.from_snapshot = snapshot and snapshots.take_up(self, stdout, stderr, paranoid, behind)
            if self.from_snapshot:
                self.paranoid = paranoid
            elif behind:
                raise NoSnapshot("none that serves")
            else:
                self._boot(stdout, stderr, boot_timeout, snapshot, paranoid)

    def _boot(self, stdout, stderr, timeout, snapshot, paranoid):
        began = time.time_ns()
        self._start(stdout, stderr)
        if self._request(self._first_command(), timeout=timeout, what="the boot"):
            what = "see the host's files" if self.machine.tree else "run a program"
            raise Trouble(f"the guest cannot {what}\n{self.console()}")
        if paranoid is not None:
            self.set_paranoid(paranoid, timeout)
        if snapshot:
            snapshots.keep(self, began)

    def _first_command(self):
        if not self.machine.tree:
            return [b"/bin/true"]  # PATH has what was added first
        kernel = self._kernel()
        modules = [f"/lib/tree-modules/{m}.ko" for m in in_order(kernel + "/tree-modules")]
        # The drivers that udev would load.
        modules += [f"/lib/modules/{m}" for m in sorted(os.listdir(kernel + "/modules"))]
        return ["here", "prepare", *modules]

    @light.contextmanager
    def _beginning(self):
        """Makes the guest's folder, and removes everything if the start fails."""
        self.emulator = None
        self.folder = make_folder()
        try:
            (self.watch or own_guard().watch)(self.folder)
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, Terminated):
                error.words = "the machine was ended before COMMAND began"
            if isinstance(error, OSError):
                raise Trouble(self._words_of(error)) from error
            raise

    def _words_of(self, error):
        if error.filename:
            return f"the machine cannot be started: {error.filename}: {error.strerror}"
        way_out = "`ulimit -f` is the limit" if error.errno == errno.EFBIG else "TMPDIR may name another place"
        return f"the machine cannot be started: its files in {self.folder}: {error.strerror}; {way_out}"

    def fork(self, stdout=None, stderr=None):
        """Another guest in the state of this one, including the contents of its caches. It ends
        when this one ends, if not earlier."""
        if self.machine.memory > RESIDENT:
            raise BadRequest(f"more than {RESIDENT} MiB of memory: cannot be forked")
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        with other._beginning():
            other._fork_of(self, stdout, stderr)
        return other

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---------------------------------------------------------------- commands

    def run(
        self,
        *command,
        user="root",
        paranoid=None,
        env=(),
        stdin=b"",
        timeout=300,
        settings=Settings(),
    ):
        """Runs a command: one argument by `sh -c`, several as a program and its
        arguments. paranoid: perf_event_paranoid, for this command and the next ones."""
        if paranoid is not None:
            self.set_paranoid(paranoid, timeout)
        uid, home = USERS[user]
        variables = [f"HOME={home}", f"USER={user}", f"LOGNAME={user}", *env]
        variables.append("PATH=/opt:/bin:/sbin:/usr/bin:/usr/sbin")
        argv = ["sh", "-c", command[0]] if len(command) == 1 else list(command)
        status = self._request(
            [*variables, *argv],
            uid,
            stdin,
            fresh=True,
            timeout=timeout,
            what=command[-1],
            settings=settings,
        )
        return Result(" ".join(command), status, self._said(0), self._said(1))

    def set_paranoid(self, paranoid, timeout=300):
        if paranoid != self.paranoid:
            script = f"echo {int(paranoid)} > /proc/sys/kernel/perf_event_paranoid"
            self._request(["sh", "-c", script], timeout=timeout)
            self.paranoid = paranoid

    def fetch(self, *paths, timeout=300, what="fetching files"):
        """The named files and folders of the guest as a tarfile, or None. Paths are relative to
        /tmp, where the last command ran; /tmp is emptied when the next command begins, and the
        tarfile when the next files are fetched. Trouble if they take more than the guest's memory; holes count only where
        the guest does not see the host's files: busybox's tar sends them."""
        import tarfile  # what only some runs need is imported where it is: the start of a run is short

        self._truncate(2)
        names = [os.path.normpath(os.path.join("/tmp", p)).lstrip("/") for p in paths]
        # Who asks says what is missing; tar's errors would be the last command's.
        script = 'exec tar cf - -C / "$@" 2> /dev/null'
        sender = ["here", "send"] if self.machine.tree else ["sh", "-c", script, "sh"]
        self.sent_whole = not self._request([*sender, *names], output=FILES, timeout=timeout, what=what)
        sent = self.streams[FILES].name
        tar = tarfile.open(sent, mode="r:") if os.path.getsize(sent) else None
        return tar if tar and tar.getmembers() else None

    def _said(self, stream):
        return self._read(stream).decode(errors="replace") if self.streams[stream] else ""

    def _read(self, stream):
        with open(self.streams[stream].name, "rb") as f:
            return f.read()

    def _truncate(self, stream):
        if self.streams[stream]:
            os.ftruncate(self.streams[stream].fileno(), 0)

    def _request(
        self,
        argv,
        uid=0,
        stdin=b"",
        output=OUTPUT,
        fresh=False,
        timeout=300,
        what="command",
        settings=Settings(),
    ):
        """Hands a command to src/guest/channel.c and waits for its status."""
        if not self.emulator:
            raise Trouble("the guest has ended")
        self._truncate(0)
        self._truncate(1)
        strings = b"".join(os.fsencode(a) + b"\0" for a in argv)
        header = struct.pack("<5I", len(strings), len(stdin), uid, output, fresh)
        message = header + padded(strings) + padded(stdin)
        first = padded(str(settings).encode())
        # A view: cutting off what was sent copies nothing of the rest.
        message = memoryview(struct.pack("<2I", len(first), len(message)) + first + message)
        deadline = time.monotonic() + timeout
        status = b""
        while not status.endswith(b"\n") or status.startswith(b"!"):
            if output == FILES:
                self._bound_files(what)
            left = deadline - time.monotonic()
            if left <= 0:
                self.close(keep=True)
                raise OutOfTime(f"stopped after {timeout:g} seconds: {what}\n{self.console()}")
            if message:
                writable = select.select([], [self.requests], [], min(left, 1))[1]
                try:
                    if writable:
                        message = message[self.requests.send(message):]
                except (BrokenPipeError, ConnectionResetError):
                    message = b""
                continue
            if select.select([self.statuses], [], [], min(left, GLANCE) if output == FILES else left)[0]:
                part = os.read(self.statuses, 64)
                if not part:
                    raise self._death(what)
                status = self._notice(status + part)
        if output == FILES:
            self._bound_files(what)  # what came between the last look and the status
        return int(status)

    def _bound_files(self, what):
        """An archive of what the guest holds is about as large as that, and that is in its memory."""
        if os.fstat(self.streams[FILES].fileno()).st_size > self.machine.memory << 20:
            self.close()
            raise Trouble(f"{what}: the guest sent more than its memory holds ({self.machine.memory} MiB); nothing of it was kept")

    def _notice(self, lines):
        """Takes what the emulator says to the user out of what it says."""
        while lines.startswith(b"!") and b"\n" in lines:
            note, _, lines = lines.partition(b"\n")
            self.notes.append(note[1:].decode(errors="replace"))
        return lines

    def _death(self, what):
        """Why the emulator ended without an answer. Ends what is left of it."""
        emulator = self.emulator
        by_itself = emulator.poll(ITS_END) is not None
        self.close(keep=True)
        console = self.console()
        said = [line for line in self._tail("stdout") if line.startswith("[")]
        # A kernel that panics restarts the machine, too.
        restarted = [line for line in said if any(end in line for end in RESTARTS) and "its console is empty" not in console]
        panicked = "Kernel panic" in console
        words = f"no result from the guest: {what}\n{console}" + "".join(
            "the emulator says: " + line for line in said if line not in restarted
        )
        if restarted and not panicked:
            words += "the machine was restarted"
        if by_itself and os.WIFSIGNALED(emulator.status):
            number = os.WTERMSIG(emulator.status)
            words += f"the emulator was ended by signal {number} ({signal.strsignal(number)})"
            if number == signal.SIGKILL:
                words += ", which this host's kernel sends if memory or CPU time runs out, too"
        return Panicked(words) if panicked else Trouble(words)

    def _tail(self, name, lines=60):
        try:
            with open(f"{self.folder}/{name}", "rb") as f:  # it may be of any size, and begin with a hole
                f.seek(max(0, os.fstat(f.fileno()).st_size - TAIL))
                text = f.read(TAIL).lstrip(b"\0").decode(errors="replace")
            return text.splitlines(keepends=True)[-lines:]
        except OSError:
            return []

    def console(self):
        """The end of what the guest's kernel wrote to its console."""
        text = "".join(self._tail("console"))
        return f"its console:\n{text}" if text.strip() else "its console is empty\n"

    # -------------------------------------------------------------- life cycle

    @property
    def alive(self):
        return self.emulator is not None and self.emulator.poll() is None

    def close(self, keep=False):
        """Ends the machine. keep: leave the folder (console, log) for one more look, until the guest is forgotten."""
        if self.emulator:
            os.close(self.statuses)
            self.requests.close()
            self.emulator.kill()
            self.emulator.wait()
            for stream in self.streams:
                if stream:
                    stream.close()
            self.emulator = None
        if not (keep or self.kept):
            remove_folder(self.folder)

    def __del__(self):
        self.close()

    def _start(self, stdout, stderr):
        import json

        import mkboot

        m, folder, build = self.machine, self.folder, self.build
        for needed in ("nhm-bochs", "base.cpio", "apart.cpio", "boot.rom", *FIRMWARE):
            if not os.path.exists(f"{build}/{needed}"):
                raise NotBuilt(f"{build}/{needed} is missing; `make machine` builds it")
        check(m)
        kernel = self._kernel()
        if m.tree and not os.path.isdir(kernel + "/tree-modules"):
            raise NoKernel(f"{m.kernel}: a kernel that sees the host's files needs its modules; take one of "
                           f"{', '.join(kernels(self.build))}")  # fmt: skip
        initrd_size = self._make_initrd(kernel)
        # The kernel unpacks the files, and both are in memory then.
        least = -(-(mkboot.INITRD + 2 * initrd_size) >> 20) + 64
        if m.memory < least:
            raise BadRequest(f"--memory {m.memory}: its kernel and the files in its memory take more; --memory {least} is the least")
        cmdline = f"{CMDLINE} lpj={m.frequency // 250} {m.cmdline}".strip()
        if not m.ips:  # Linux would measure it for a tenth of a second
            cmdline += f" tsc_early_khz={m.frequency // 1000}"
        if m.tree:
            # Addresses change how many instructions a program takes: what they are aligned to, for instance.
            cmdline += f" memmap={m.tree}M!{TREE:#x} norandmaps rdinit=/sbin/here"
        if len(cmdline) > 2000:
            raise BadRequest("the kernel's command line is too long")
        with open(kernel + "/boot.json") as f:
            boot = json.load(f)
        with open(folder + "/params", "wb") as f:
            f.write(mkboot.boot_params(boot, cmdline, initrd_size))
        images = [f"{kernel}/{name}@{address:#x}" for name, address in boot["images"]]
        self.inputs += [kernel + "/boot.json", *(f"{kernel}/{name}" for name, _ in boot["images"])]
        images += [f"{folder}/params@{mkboot.PARAMS:#x}", f"{folder}/initrd@{mkboot.INITRD:#x}"]
        self.inputs += [build + "/boot.rom", self.program(), *self._firmware()]
        # Nothing of the caller's environment: it would be in a snapshot.
        env = dict(
            TZ="UTC",
            NHM_CALLER=str(os.getpid()),
            NHM_IMAGES=",".join(images),
            NHM_MODEL=m.model,
            NHM_TOPOLOGY=f"{m.packages}:{m.cores}:{m.threads}",
            # Huge pages if the host has them: a machine's memory is large. And nothing that depends on the host's
            # processor: a snapshot serves others too.
            GLIBC_TUNABLES="glibc.malloc.hugetlb=1:glibc.cpu.hwcaps=" + LEFT_OUT,
            LD_BIND_NOW="1",  # binding a function later saves registers as this processor has them
        )
        if m.tree:
            env["NHM_TREE"] = f"{TREE:#x},{m.tree << 20:#x}"
        if not m.ips:
            env["NHM_TIMED"] = "1"
        if m.perfmon:
            env["NHM_PERFMON"] = m.perfmon
        if m.microcode:
            env["NHM_MICROCODE"] = str(m.microcode)
        if m.firmware:
            env["NHM_FIRMWARE"] = str(m.firmware)
        self._launch(env, stdout, stderr)

    def _launch(self, env, stdout, stderr):
        with self._files(stdout, stderr) as files:
            rc = dict(vars(self.machine), cpus=self.machine.cpus, folder=self.folder)
            rc.update(frequency=self.machine.frequency, resident=min(self.machine.memory, RESIDENT), console=files[CONSOLE])
            rc.update(firmware=self._firmware(), rom=self.build + "/boot.rom")
            with open(self.folder + "/bochsrc", "w") as f:
                f.write(BOCHSRC.format(**rc))
            env["NHM_STREAMS"] = ",".join(map(str, files))
            self._spawn([self.program(), "-q", "-f", self.folder + "/bochsrc"], files, env)

    def _firmware(self):
        return [f"{self.build}/{name}" for name in FIRMWARE]

    def program(self):
        # NHM_BOCHS: another emulator on the same kernels and guest, for the mutants.
        return os.environ.get("NHM_BOCHS") or self.build + "/nhm-bochs"

    def _spawn(self, command, files, env, *more):
        # A terminal's signals are for the command in the guest.
        self.emulator = start(command, (*files, *more), env, files[OWN_OUTPUT], bool(self.machine.tree))

    def _fork_of(self, guest, stdout, stderr):
        if not guest.alive:
            raise Trouble("the guest has ended")
        with self._files(stdout, stderr) as files:
            settings = padded(b"fork")
            message = struct.pack("<2I", len(settings), 0) + settings
            # It is small and nothing else is in transit, so it is sent in one piece.
            light.send_fds(guest.requests, [message], files)
        pid = os.read(self.statuses, 64)
        if not pid:
            raise Trouble("the emulator could not be forked")
        # It waits for its first request, so its PID cannot have been reused.
        self.emulator = Process(int(pid))

    @light.contextmanager
    def _files(self, stdout, stderr):
        """Makes the files through which a machine and the host communicate; yields the machine's
        ends, in the order of src/nhm/nhm_ports.cc."""
        self.streams = [
            None if given else open(f"{self.folder}/{name}", "ab")
            for given, name in ((stdout, "out"), (stderr, "err"), (None, "files"))
        ]
        self.statuses, status_end = os.pipe()
        self.requests, request_end = light.socketpair()
        self.requests.setblocking(False)
        # Copies: 1 and 2 become the emulator's own when it starts.
        files = [
            os.dup((given or own).fileno())
            for given, own in zip((stdout, stderr, None), self.streams)
        ]
        files.append(status_end)
        for name in ("console", "stdout"):
            files.append(os.open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600))
        files.append(request_end.detach())
        try:
            yield files
        finally:
            for fd in files:
                os.close(fd)

    def _kernel(self):
        """The folder of the machine's kernel, prepared for boot.S."""
        import mkboot

        name = self.machine.kernel
        folder = f"{self.build}/kernel/{name}"
        if name in kernels(self.build):
            return folder
        if not os.path.isfile(name):
            built = ", ".join(kernels(self.build)) or "none"
            raise NoKernel(f"no kernel {name}: neither a file nor one that is built ({built})")
        self.inputs.append(name)
        folder = self.folder + "/kernel"
        os.mkdir(folder)
        try:
            mkboot.extract(name, folder)
        except mkboot.Unusable as e:
            raise NoKernel(str(e)) from e
        return folder

    def _make_initrd(self, kernel):
        import shutil

        import guestimage

        out = self.folder + "/initrd"
        parts = [f"{self.build}/{name}.cpio" for name in (("base",) if self.machine.tree else ("base", "apart"))]
        archive = guestimage.Archive(out + ".top", self.machine.rounded)
        programs = []
        for item in self.machine.add:
            source, target = split_item(item)
            programs += archive.tree(source, target)
        if os.path.isdir(kernel + "/modules"):
            archive.tree(kernel + "/modules", "/lib/modules")
        if self.machine.tree:
            archive.tree(kernel + "/tree-modules", "/lib/tree-modules")
            check_form(self.build + "/here")
            archive.copy(self.build + "/here", "/sbin/here")
        if self.machine.libraries:
            archive.libraries(programs)
        archive.close()
        self.inputs += [*parts, *archive.sources]
        with open(out, "wb") as f:  # the kernel reads one archive after the other
            for part in (*parts, out + ".top"):
                with open(part, "rb") as archived:
                    shutil.copyfileobj(archived, f)
        os.remove(out + ".top")
        return os.path.getsize(out)


def in_order(folder):
    """The names of a folder's kernel modules, each after those that it needs."""
    import re

    needs = {}
    for name in sorted(os.listdir(folder)):
        with open(f"{folder}/{name}", "rb") as f:
            said = re.search(rb"\0depends=([^\0]*)\0", f.read())
        needs[name.removesuffix(".ko")] = said.group(1).decode().split(",") if said else []
    done = []

    def add(name):
        for other in needs.get(name, ()):
            add(other)
        if name in needs and name not in done:
            done.append(name)

    add("crc32c_generic")  # libcrc32c asks for it by what it does, not by its name; some kernels have neither
    for name in needs:
        add(name)
    return done


def check_form(program):
    """NotBuilt if the guest's part would take what it is told for something else."""
    with open(program, "rb") as f:
        if ORDER not in f.read():
            raise NotBuilt(f"{program} is of another version than this driver; `make machine` builds it")


def padded(data):
    return data + bytes(-len(data) % 4)


def check(m):
    """Refuses a machine that the emulator does not support."""
    if not 1 <= m.cpus <= 16:
        raise BadRequest(f"{m.cpus} logical processors: 1 to 16")
    if m.threads not in (1, 2):
        raise BadRequest(f"{m.threads} threads a core: 1 or 2")
    if m.packages not in (1, 2):
        raise BadRequest(f"{m.packages} packages: 1 or 2")
    if m.packages > 1 and m.cores & (m.cores - 1):
        raise BadRequest("several packages: cores a package must be a power of two")
    if m.ips and not IPS_LEAST <= m.ips < 1 << 32:
        raise BadRequest(f"--ips {m.ips}: {IPS_LEAST} to {(1 << 32) - 1} instructions a second")
    if m.model not in MODELS:
        raise BadRequest(f"model {m.model}: one of {', '.join(MODELS)}")


def is_closed(fd):
    """Also if nhmtap has opened /dev/null in its place, which can't be used in the stream's direction: main.c."""
    try:
        unusable = os.O_RDONLY if fd else os.O_WRONLY
        return os.fstat(fd).st_rdev == NULL and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == unusable
    except OSError:
        return True


def open_closed():
    """Opens standard streams that are closed, so that no other file gets their numbers. Returns a bit for each."""
    closed = [fd for fd in range(3) if is_closed(fd)]
    for fd in closed:
        null = os.open(os.devnull, os.O_RDWR)  # as the stream itself, if nothing is open in its place
        os.dup2(null, fd)
        if null != fd:
            os.close(null)
    sys.stdout = sys.stdout or open(1, "w")
    sys.stderr = sys.stderr or open(2, "w")
    return sum(1 << fd for fd in closed)


def check_proc():
    """A chroot may lack it."""
    if not os.path.exists("/proc/self/fd"):
        raise Trouble("/proc is not mounted here, and the machine's files are handed over by it: mount -t proc proc /proc")


def check_folder():
    """It may have been removed."""
    try:
        os.getcwd()
    except OSError as error:
        raise Trouble(f"the working folder cannot be named: {error.strerror}; change to one that is there") from None


def split_item(item):
    """Splits HOSTPATH[:GUESTPATH] of a file to add into the two paths."""
    source, _, target = item.rpartition(":") if ":/" in item else (item, "", "")
    if not source:
        source, target = item, ""
    if not os.path.exists(source):
        raise BadRequest(f"--add {source}: no such file")
    name = os.path.basename(os.path.abspath(source))
    if not target:
        target = "/opt/" + name
    elif target.endswith("/"):
        target += name
    return source, target


def die_with(number, _):
    raise Terminated(number)


def clean_up_on_signals():
    """Lets signals end the program by an exception, so that the folder in /tmp is removed and the
    emulator ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, die_with)
