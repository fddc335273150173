# SPDX-License-Identifier: GPL-2.0-only
"""Runs a command in a guest as if it ran here: src/guest/here.c is the guest's part.

The guest must have been made with Machine(tree=...), so that it sees the host's files.
"""
import os
import select
import stat
import struct
import sys
import time

import guard
import light
import nehalem
from light import signal

INPUT, END_OF_INPUT, SIGNAL, SIZE = 1, 2, 3, 4  # kinds of events
WANT_INPUT, STOPPED, SIGNALLED = b"1", b"2", b"3"  # words of the guest
LOST = {b"6": (1, "standard output"), b"7": (2, "standard error")}  # too: what it wrote there was not taken here
FROM_NULL, FROM_FILE, FROM_STREAM = 0, 1, 2
CHUNK = 1 << 16  # bytes of input at a time
BEFORE_RUN_ID = "<8s17I20s9I"  # of an order
RUN_ID = 16  # bytes, of the host's random numbers: the guest's are the same in all runs
PUNCH_HOLE = 3  # of fallocate(2): takes no room any more, and the size stays
FATAL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PASSED_ON = (*FATAL, signal.SIGUSR1, signal.SIGUSR2)
PATIENCE = 30  # seconds in which the guest must have passed a signal on
GLANCE = 2  # seconds between two looks at what the guest's root may write without end
MOST_HELD = 16 << 20  # bytes of it that take room on the disk
MOST_WAITING = 1 << 20  # bytes for the guest that wait until it takes them: its root may ask for input and not take it
KERNELS = ("/proc", "/sys")  # to write files here would change this host's kernel
OWN = (*KERNELS, "/dev", "/run")  # the guest's own
# Variables that name what the guest cannot reach: sockets, and descriptors that are not passed on.
UNREACHABLE = {
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GPG_AGENT_INFO", "JOURNAL_STREAM", "LISTEN_FDNAMES",
    "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "SSH_AUTH_SOCK", "TMUX", "WAYLAND_DISPLAY",
    "XAUTHORITY", "XDG_RUNTIME_DIR",
}  # fmt: skip


class Ended(nehalem.Trouble):
    """By a signal, before or without the command."""

    def __init__(self, number, words):
        super().__init__(words)
        self.status = 128 + number


def identity(user):
    """The numbers of a user of the host and of its groups; None: of the one who calls."""
    if user is None:
        return os.geteuid(), os.getegid(), os.getgroups()
    import pwd

    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise nehalem.BadRequest(f"--user {user}: no such user here") from None
    return entry.pw_uid, entry.pw_gid, os.getgrouplist(user, entry.pw_gid)


def added_variables():
    """The names of those that the caller does not have: of nhmtap's, and the one that Python adds in the C locale."""
    added = {"NHM_BUILD", "NHM_BUILD_FOUND"} if "NHM_BUILD_FOUND" in os.environ else set()
    if os.environ.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        with open("/proc/self/environ", "rb") as f:
            if not any(variable.startswith(b"LC_CTYPE=") for variable in f.read().split(b"\0")):
                added.add("LC_CTYPE")
    return added


def environment(user, given):
    added = added_variables()
    variables = {k: v for k, v in os.environ.items() if k not in UNREACHABLE and k not in added}
    if user is not None:
        import pwd

        entry = pwd.getpwnam(user)
        variables.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)
    variables.update(item.split("=", 1) for item in given)
    return [f"{k}={v}" for k, v in variables.items()]


def umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def ignored_signals():
    """The bits of the signals that the caller ignores, which a command inherits. Of SIGPIPE and SIGXFSZ nobody knows: Python
    ignores them itself."""
    numbers = set(range(1, 32)) - {signal.SIGPIPE, signal.SIGXFSZ}
    return sum(1 << number for number in numbers if signal.getsignal(number) == signal.SIG_IGN)


def is_terminal(fd):
    with light.suppress(OSError):
        return os.isatty(fd)
    return False


def in_front(fd):
    """Whether this process may use the terminal now: not as a background job."""
    with light.suppress(OSError):
        return os.tcgetpgrp(fd) == os.getpgrp()
    return False


def kind_of_input():
    try:
        s = os.fstat(0)
    except OSError:
        return FROM_NULL
    if stat.S_ISREG(s.st_mode):
        return FROM_FILE
    if s.st_rdev == nehalem.NULL or (os.isatty(0) and not in_front(0)):
        return FROM_NULL
    return FROM_STREAM


def are_one_file(a, b):
    with light.suppress(OSError):
        return os.path.samestat(os.fstat(a), os.fstat(b))
    return False


def has_gone(fd):
    """Whether nobody reads a pipe any more, which ends a command as it does elsewhere."""
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))


def size_of(fd):
    try:
        return tuple(os.get_terminal_size(fd))[::-1]
    except OSError:
        return 24, 80


class Terminal:
    """The host's terminal while the guest's is the one that edits lines and makes signals."""

    def __init__(self, given):
        self.fd = next((fd for fd in range(3) if given[fd]), None)
        self.is_input = given[0] and in_front(0)
        self.before = None
        if self.fd is not None:
            import termios

            self.before = termios.tcgetattr(self.fd)

    def described(self):
        """Its rows, columns, flags and control characters."""
        if self.before is None:
            return (24, 80, 0, 0, 0, 0, bytes(20))
        iflag, oflag, cflag, lflag, _, _, characters = self.before
        if not self.is_input:
            import termios

            oflag &= ~termios.OPOST  # the host's does it
        control = b"".join(c if isinstance(c, bytes) else bytes([c]) for c in characters)
        return (*size_of(self.fd), iflag, oflag, cflag, lflag, control[:20])

    def make_raw(self):
        if self.is_input:
            import termios
            import tty

            tty.setraw(self.fd, termios.TCSADRAIN)

    def restore(self):
        if self.is_input:
            import termios

            with light.suppress(termios.error):
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self.before)


class Guard(nehalem.Guard):
    """One that restores the terminal, too."""

    def __init__(self, terminal):
        self.terminal = terminal
        super().__init__()

    def _start(self, reader):
        """A fork: this process is small, and has no threads yet."""
        if os.fork():
            return
        with light.suppress(BaseException):
            os.close(self.pipe)
            self._wait(reader)
        os._exit(0)

    def _wait(self, reader):
        os.setsid()  # so that what ends this process's group does not end it too
        for fd in range(3):
            if fd != self.terminal.fd:
                with light.suppress(OSError):
                    os.close(fd)
        folders = guard.wait(reader)
        if folders is None:
            return
        self.terminal.restore()
        for folder in folders:
            guard.remove_folder(folder)


class Signals:
    """Signals as numbers that arrive in a pipe."""

    def __enter__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.before = {n: signal.signal(n, lambda *_: None) for n in (*PASSED_ON, signal.SIGWINCH)}
        self.wakeup = signal.set_wakeup_fd(self.writer)
        return self

    def __exit__(self, *_):
        signal.set_wakeup_fd(self.wakeup)
        for number, handler in self.before.items():
            signal.signal(number, handler)
        os.close(self.reader)
        os.close(self.writer)

    def arrived(self):
        with light.suppress(BlockingIOError):
            return os.read(self.reader, 4096)
        return b""


def keep_end(path):
    """Leaves only what nehalem.Guest.console() may show in a file that is written at its end, with a hole before it. Where
    the file system makes no holes, leaves nothing: what is written next goes on behind all the same."""
    import ctypes

    with open(path, "r+b") as f:
        size = max(0, os.fstat(f.fileno()).st_size - nehalem.TAIL)
        fallocate = ctypes.CDLL(None).fallocate
        if fallocate(f.fileno(), PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(size)):
            f.truncate(0)


class Carrier:
    """Carries a command's input, signals and terminal to the guest while it runs."""

    def __init__(self, guest, terminal, timeout, ignored=0):
        self.guest = guest
        self.terminal = terminal
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.timeout = timeout
        self.ignored = ignored
        self.outgoing = b""
        self.said = b""
        self.wanted = self.ended = False
        self.status = None
        self.lost = {}  # an ordered set
        self.pending = []  # signals that the guest has not passed on yet, and when they came
        self.urgent = 0
        self.looked = time.monotonic()

    def send(self, settings, data=b""):
        first = nehalem.padded(settings)
        self.outgoing += struct.pack("<2I", len(first), len(data)) + first + data

    def event(self, kind, data=b""):
        self.send(b"event", struct.pack("<2I", kind, len(data)) + nehalem.padded(data))

    def follow(self, signals):
        while self.status is None:
            reads = [self.guest.statuses, signals.reader]
            if self.wanted and len(self.outgoing) < MOST_WAITING:
                if self.ended:
                    self._end_input()
                else:
                    reads.append(0)
            writes = [self.guest.requests] if self.outgoing else []
            ready, writable, _ = select.select(reads, writes, [], self._left())
            self._look()
            if writable:
                self._write()
            if signals.reader in ready:
                for number in signals.arrived():
                    self._signal(number)
            if 0 in ready:
                self._input()
            if self.guest.statuses in ready:
                self._listen()
        return self.status

    def _left(self):
        """Until something has to happen, if only this check."""
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            raise nehalem.OutOfTime(f"stopped after {self.timeout:g} seconds\n{self.guest.console()}")
        if self.pending and now >= self.pending[0][1] + PATIENCE:
            number = self.pending[0][0]
            raise Ended(number, f"{light.name_of_signal(number)}: the guest did not take it within "
                                f"{PATIENCE} seconds; the machine was ended")  # fmt: skip
        ends = [self.deadline, self.pending[0][1] + PATIENCE if self.pending else None, self.looked + GLANCE]
        return max(0, min(end - now for end in ends if end is not None))

    def _look(self):
        """Empties the files of the console and the emulator's log when they are large, but for their ends, of which some
        lines are shown. What --out wants is not sent before the command has ended."""
        if time.monotonic() < self.looked + GLANCE:
            return
        self.looked = time.monotonic()
        for name in ("console", "stdout"):
            if self._held(name) > MOST_HELD:
                keep_end(f"{self.guest.folder}/{name}")
        if self._held("files") > MOST_HELD:
            raise nehalem.Trouble("the guest sends files that nobody asked for; the machine was ended")

    def _held(self, name):
        with light.suppress(FileNotFoundError):
            return os.stat(f"{self.guest.folder}/{name}").st_blocks * 512
        return 0

    def _write(self):
        try:
            self.outgoing = self.outgoing[self.guest.requests.send(self.outgoing):]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self.outgoing = b""  # the statuses say that it has ended

    def _signal(self, number):
        if number == signal.SIGWINCH:
            if self.terminal.fd is not None:
                self.event(SIZE, struct.pack("<2I", *size_of(self.terminal.fd)))
            return
        self.event(SIGNAL, struct.pack("<2I", number, 0))
        if number not in FATAL or self.ignored >> number & 1:
            return
        self.pending.append((number, time.monotonic()))
        if len(self.pending) >= 3:
            raise Ended(number, f"{light.name_of_signal(number)} for the third time; the machine was ended")

    def _input(self):
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.wanted = False
        if data:
            self.event(INPUT, data)
        else:
            self._end_input()

    def _end_input(self):
        self.ended = True
        self.wanted = False
        self.event(END_OF_INPUT)

    def _listen(self):
        part = os.read(self.guest.statuses, CHUNK)
        if not part:
            raise self.guest._death("the command")
        *lines, self.said = (self.said + part).split(b"\n")
        for line in lines:
            if line.startswith(b"="):
                self._word(line[1:])
            else:
                self.status = int(line)

    def _word(self, word):
        if word == WANT_INPUT:
            self.wanted = True
        elif word == SIGNALLED:
            del self.pending[:1]
        elif word == STOPPED:
            self._stop()
        elif word in LOST and not has_gone(LOST[word][0]):
            self.lost[LOST[word][1]] = True

    def _stop(self):
        """Stops as the command did, so that the shell sees it; they go on together."""
        self.terminal.restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.terminal.make_raw()
        if self.terminal.fd is not None:
            self._signal(signal.SIGWINCH)
        self._signal(signal.SIGCONT)


class Surroundings(nehalem.Choices):
    """What of the guest is other than in all runs, if anything is."""

    clock: int = None  # seconds since 1970
    number: int = None  # decides about addresses, random numbers and pids
    few_symbols: bool = False  # /proc/kallsyms has two lines
    breakpoints: bool = False  # debuggers and uprobes may set some in the host's programs

    def words(self):
        return self.clock is not None, self.clock or 0, self.number is not None, self.number or 0, self.few_symbols, self.breakpoints


SET_BREAKPOINTS = {"gdb", "gdbserver", "lldb", "rr", "ltrace", "dlv", "bpftrace"}


def sets_breakpoints(program):
    """Whether its name says so: that of a debugger or of what sets uprobes, as gdb, lldb-14, funccount-bpfcc."""
    name, _, end = os.path.basename(program).partition("-")
    return name in SET_BREAKPOINTS or end == "bpfcc"


def order(command, user, env, terminal, given, surroundings=Surroundings(), closed=0, ignored=0):
    """What src/guest/here.c reads. closed: the bits of open_closed(). ignored: those of ignored_signals()."""
    uid, gid, groups = identity(user)
    kind = kind_of_input()
    offset = os.lseek(0, 0, os.SEEK_CUR) if kind == FROM_FILE else 0
    rows, columns, iflag, oflag, cflag, lflag, control = terminal.described()
    variables = environment(user, env)
    program = "" if user else place_of_program(command[0])
    strings = b"".join(os.fsencode(s) + b"\0" for s in (os.getcwd(), program, *command, *variables))
    terminals = sum(1 << fd for fd in range(3) if given[fd] and (fd or kind == FROM_STREAM))
    fixed = struct.pack(
        f"{BEFORE_RUN_ID}{RUN_ID}s", nehalem.ORDER, uid, gid, len(groups), umask(), terminals, closed, ignored, are_one_file(1, 2), kind,
        offset & 0xFFFFFFFF, offset >> 32, rows, columns, iflag, oflag, cflag, lflag, control,
        len(command), len(variables), len(strings), *surroundings.words(), os.urandom(RUN_ID),
    )  # fmt: skip
    return fixed + struct.pack(f"<{len(groups)}I", *groups) + strings


def without_run_id(ordered):
    """What is the same in all runs of an order."""
    end = struct.calcsize(BEFORE_RUN_ID)
    return ordered[:end] + ordered[end + RUN_ID:]


# How the types of such file systems begin: `foreign` in nhm_host.cc.
FOREIGN = (
    b"fuse", b"nfs", b"cifs", b"smb", b"9p", b"ceph", b"afs", b"coda", b"lustre", b"virtiofs", b"beegfs", b"orangefs",
    b"davfs", b"ncpfs", b"gfs2", b"ocfs2", b"vboxsf", b"vmhgfs", b"prl_fs",
)  # fmt: skip


def has_foreign_mounts():
    """Whether a file system is mounted whose server may not answer."""
    try:
        with open("/proc/self/mountinfo", "rb") as f:
            types = [line.rpartition(b" - ")[2].split(b" ")[0] for line in f]
    except OSError:
        return False
    return any(t.startswith(FOREIGN) and t not in (b"fusectl", b"nfsd") for t in types)


def answer(find, *given):
    """The paths that a function finds. If a server may not answer, it runs in a process that is given up after two seconds:
    nothing then."""
    if not has_foreign_mounts():
        return find(*given)
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        with light.suppress(BaseException), open(writer, "wb") as f:
            f.write(b"\0".join(map(os.fsencode, find(*given))))
        os._exit(0)
    os.close(writer)
    said = b""
    with open(reader, "rb", buffering=0) as f:
        while select.select([f], [], [], 2)[0] and (part := f.read(CHUNK)):
            said += part
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return {os.fsdecode(p) for p in said.split(b"\0") if p}


def in_path(name):
    """Where the caller's PATH has a program, or nothing."""
    for folder in os.environ.get("PATH", "").split(":"):
        path = os.path.join(folder or ".", name)
        if is_below(os.path.realpath(folder), OWN):
            break
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return {path}
    return set()


def place_of_program(name):
    """Where the caller's PATH has it, which takes the guest much longer to find; or nothing: the guest looks for it. That
    moves counts, so it must not depend on what others mount here."""
    return "" if "/" in name else "".join(answer(in_path, name))


def resolved(paths):
    return {os.path.realpath(p) for p in paths}


def likely_paths(command):
    """Paths that the command may use: it finds them even below folders that the user cannot list."""
    folders = os.environ.get("PATH", "").split(":")
    paths = (os.getcwd(), os.environ.get("HOME", ""), *folders, *command)
    paths = {os.path.abspath(p) for p in paths if p and "\0" not in p and len(p) < 4096}
    return sorted(paths | answer(resolved, paths))


def request(strings, data, settings):
    """The message that makes the guest run /sbin/here."""
    text = b"".join(os.fsencode(s) + b"\0" for s in strings)
    header = struct.pack("<5I", len(text), len(data), 0, nehalem.OUTPUT, False)
    message = header + nehalem.padded(text) + nehalem.padded(data)
    first = nehalem.padded(str(settings).encode())
    return struct.pack("<2I", len(first), len(message)) + first + message


def run(
    guest, command, terminal, user=None, env=(), timeout=None, settings=nehalem.Settings(), surroundings=Surroundings(), closed=0,
):  # fmt: skip
    """Runs a command in the guest; returns its status."""
    given = [is_terminal(fd) for fd in range(3)]
    ignored = ignored_signals()
    carrier = Carrier(guest, terminal, timeout, ignored)
    with Signals() as signals:
        try:
            carrier.send(b"notes")
            carrier.send(b"stdin=/proc/%d/fd/0" % os.getpid())
            for path in likely_paths(command):
                carrier.send(b"know=" + os.fsencode(path))
            ordered = order(command, user, env, terminal, given, surroundings, closed, ignored)
            carrier.outgoing += request(["here", "run"], ordered, settings)
            terminal.make_raw()
            status = carrier.follow(signals)
        finally:
            terminal.restore()
    for stream in carrier.lost:
        with light.suppress(OSError):  # perhaps it is this one
            os.write(2, f"run: {stream} cannot be written here; what the command wrote to it is not complete\n".encode())
    return status or (nehalem.Trouble.status if carrier.lost else 0)


# -------------------------------------------------------------------- files that are kept


def replaced(guest, path):
    """The folders below a path that the command removed and made anew."""
    guest._truncate(nehalem.FILES)
    guest._request(["here", "replaced", path], output=nehalem.FILES)
    return {os.fsdecode(p) for p in guest._read(nehalem.FILES).split(b"\0") if p}


def clear(path):
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


class Dates:
    """Dates of files as they are to be here. The guest's clock began at another time than this run."""

    def __init__(self, here=0, there=0):
        """When the run began by each of the two clocks, in nanoseconds since 1970."""
        self.here = here
        self.there = there
        self.now = time.time_ns()

    def translated(self, member):
        """One that the guest's clock gave is as much later than the run's beginning as there. Others stay."""
        seconds, _, fraction = member.pax_headers.get("mtime", str(member.mtime)).partition(".")
        date = int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
        return date if date < self.there else min(self.now, date - self.there + self.here)


def write_all_back(guest, paths, began=(0, 0)):
    """Writes what the command changed at these paths, or removed there, to the host. Whatever the guest sends, this is
    not more than fits into its memory. A path at which there is nothing keeps no other one from being written.
    began: of Dates."""
    room = Room(guest.machine.memory)
    dates = Dates(*began)
    missing = []
    for path in paths:
        try:
            write_back(guest, path, room, dates)
        except nehalem.MissingFile as error:
            missing.append(str(error))
        except nehalem.Terminated as end:
            raise Ended(end.number, f"{light.name_of_signal(end.number)}: --out {path} was not written to its end; what "
                                    "follows it is missing") from None  # fmt: skip
    if missing:
        raise nehalem.MissingFile("\n".join(missing))


def write_back(guest, path, room, dates):
    try:
        write_changes(guest, path, room, dates)
    except not_taken() as error:
        raise nehalem.Trouble(f"--out {path}: what the guest sent is no archive ({error}); the rest is missing") from None
    except OSError as error:
        raise nehalem.Trouble(f"--out {path}: {error.filename or 'it'} cannot be written here ({error.strerror}); the rest is missing") from None


def not_taken():
    """The errors of an archive that can't be read, also by Python's tarfile with what it does not check."""
    import tarfile

    return tarfile.TarError, ValueError, OverflowError


def is_below(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def place_of(path):
    """Where --out finds it: through links to its folder, but not through itself."""
    folder, name = os.path.split(os.path.abspath(path))
    place = os.path.join(os.path.realpath(folder), name)
    if is_below(place, KERNELS):
        raise nehalem.BadRequest(f"--out {path}: files of the kernel are not brought back")
    return place


def write_changes(guest, path, room, dates):
    path = place_of(path)
    layer = "" if is_below(path, OWN) else "/layer/upper"
    anew = replaced(guest, layer + path)
    tar = guest.fetch(layer + path, what=f"--out {path}")
    if not tar and guest.sent_whole:
        if os.path.realpath(path) != path:  # a link that the command left as it was: it wrote where the link leads
            write_back(guest, os.path.realpath(path), room, dates)
        elif not os.path.lexists(path):
            raise nehalem.MissingFile(f"--out {path}: the command left no such file")
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if tar:
        Unpacked(tar, layer, path, {to[len(layer):] for to in anew}, room, dates).write()
    if not guest.sent_whole:
        raise nehalem.Trouble(f"--out {path}: what could not be read in the guest is missing")


def is_in_place(path):
    """Whether no link leads to another folder on the way."""
    return os.path.realpath(os.path.dirname(path)) == os.path.dirname(path)


def take_attributes(member, path, dates):
    """Gives what is at the path the owner, mode and date of a member, as far as the caller may. What others own has them
    already, and a file gets no rights of its owner's."""
    before = os.lstat(path)
    is_root = os.geteuid() == 0
    if not is_root and before.st_uid != os.geteuid():
        return
    owner = member.uid if is_root else before.st_uid
    group = member.gid if is_root or member.gid in (os.getegid(), *os.getgroups()) else before.st_gid
    if (owner, group) != (before.st_uid, before.st_gid):
        try:
            os.chown(path, owner, group, follow_symlinks=False)
        except OSError as error:  # as in a container that has not all users
            print(f"machine: --out {path}: it stays yours here, not of {owner}:{group} ({error.strerror})", file=sys.stderr)
    if not member.issym():
        mode = member.mode & (0o3777 if member.isdir() else 0o777)  # a shared folder's bits, as /tmp has them
        if before.st_mode & 0o7777 != mode:
            os.chmod(path, mode)
    date = dates.translated(member)
    os.utime(path, ns=(date, date), follow_symlinks=False)


class Room:
    """What may be written yet. A link is written as a copy, and an archive can say that a file is of any size."""

    def __init__(self, memory):
        self.memory = memory
        self.left = memory << 20

    def copy(self, source, to, size):
        """Copies so many bytes, or to the end."""
        while size and (part := source.read(min(size, 1 << 20))):
            size -= len(part)
            self.left -= len(part)
            if self.left < 0:
                raise nehalem.Trouble(f"{to.name}: --out writes at most as much as the machine has memory ({self.memory} MiB); "
                                      "the rest of this file, and what follows it, is missing")  # fmt: skip
            to.write(part)

    def copy_member(self, member, source, to):
        """Its holes take no room here either."""
        parts = [(0, member.size)] if member.sparse is None else member.sparse
        if parts != sorted(parts):
            raise ValueError("parts of a file are out of order")
        for start, size in parts:
            source.seek(start)
            to.seek(start)
            self.copy(source, to, size)
        to.truncate(member.size)


class Unpacked:
    """An archive of what the guest has at a path and below it, which is written there. Root of the machine can send any."""

    def __init__(self, tar, layer, path, anew, room, dates):
        """anew: the folders that the command removed and made again."""
        self.tar = tar
        self.path = path
        self.prefix = (layer + path).strip("/")
        self.anew = anew
        self.room = room
        self.dates = dates
        self.folders = {}

    def write(self):
        try:
            for member in self.tar.getmembers():
                to = self._place_of(member)
                if to:  # the root folder stays as it is
                    self._write(member, to)
        finally:  # a folder may be one that nobody may write to, and what is written in it changes its date
            for to, member in reversed(self.folders.items()):
                if is_in_place(to) and os.path.isdir(to) and not os.path.islink(to):
                    take_attributes(member, to, self.dates)

    def _place_of(self, member):
        rest = member.name.rstrip("/")[len(self.prefix):]
        if not member.name.startswith(self.prefix) or (rest and rest[0] != "/") or ".." in rest.split("/"):
            raise nehalem.Trouble(f"--out {self.path}: the guest sent a file of another place: {member.name}")
        to = self.path.rstrip("/") + rest
        if rest and not is_in_place(to):
            raise nehalem.Trouble(f"--out {self.path}: the guest sent a file that a link leads out: {member.name}")
        return to

    def _write(self, member, to):
        """What is at the place is no link then that would lead out of it."""
        if member.isdir():
            self._make_folder(member, to)
        elif member.ischr() and member.devmajor == member.devminor == 0:
            clear(to)  # overlayfs marks so what was removed
        elif member.issym():
            clear(to)
            os.symlink(member.linkname, to)
            take_attributes(member, to, self.dates)
        elif member.isreg():
            self._write_file(member, to)
        elif member.islnk():
            self._link(self._content_of(member, to), to)
        else:
            print(f"machine: --out {to}: it is a FIFO or a device, and stays in the machine", file=sys.stderr)

    def _make_folder(self, member, to):
        if to in self.anew or os.path.islink(to) or not os.path.isdir(to):
            clear(to)
        os.makedirs(to, exist_ok=True)
        before = os.stat(to)
        if before.st_uid == os.geteuid() and before.st_mode & 0o700 != 0o700:
            os.chmod(to, 0o700)  # until its files are written
        self.folders[to] = member

    def _write_file(self, member, to):
        with self.tar.extractfile(member) as f, open_anew(to) as t:
            self.room.copy_member(member, f, t)
        take_attributes(member, to, self.dates)

    def _content_of(self, link, to):
        """The member that it is a name of. A hostile link may name nothing, a folder, or another link."""
        try:
            found = self.tar.getmember(link.linkname)
        except KeyError:
            found = None
        if not found or not found.isreg():
            raise nehalem.Trouble(f"--out {to}: the guest sent a link to what is no file of its archive; the rest is missing")
        return found

    def _link(self, content, to):
        """A copy where the file system has no links."""
        written = self._place_of(content)
        if written != to:
            clear(to)
            with light.suppress(OSError):
                os.link(written, to, follow_symlinks=False)
                return
        self._write_file(content, to)


def open_anew(path):
    """In place, so that a file of others that the caller may write to stays theirs. But a file of several names becomes
    one of its own, as in the guest; so does one that the caller may not write to, but replace."""
    if os.path.islink(path) or not os.path.isfile(path) or os.stat(path).st_nlink > 1:
        clear(path)
    try:
        return open(path, "wb")
    except PermissionError:
        clear(path)
        return open(path, "wb")
