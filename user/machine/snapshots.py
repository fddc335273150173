# SPDX-License-Identifier: GPL-2.0-only
"""Machines that have booted, as files from which others continue.

A snapshot is taken when a machine has booted and waits for its first command. It serves a machine
that is the same in everything that the boot depends on: what was chosen about it, which tells machines
apart, and the files that were read; a snapshot whose files have changed since is replaced by the next.
The host may be another one.

Others are taken where a command waits (forks.py). They hold what it has read of the host's files and its environment, so
they have a folder of their own, which nobody brings along. The machine that continues looks itself whether the files are
what they were.

Snapshots are kept in a folder of the caller's own. Whatever is wrong there, a machine boots as if
there were no snapshots.
"""
import os
import stat
import struct
import time
import zlib

import light

LIMIT = 4 << 30  # bytes of all snapshots; those that were used least recently go
SPARE = 1 << 30  # bytes that a snapshot leaves free on the disk
MAGIC = b"nhm-snap"
END = struct.Struct("<QQ8s")  # at the file's end: bytes of the description before it, of the file; MAGIC
SUFFIX = ".machine"
FRESH = ".new-"  # what is being written begins so
RESTORER = "/nhm-restore"


def folder(behind=""):
    """Where snapshots are kept, or None. behind: of key_of()."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        home = os.environ.get("HOME", "")
        cache = "/var/cache" if os.geteuid() == 0 else home + "/.cache" if os.path.isabs(home) else ""
    return cache + ("/nhmtap/started" if behind else "/nhmtap/machine") if cache else None


def is_own(status):
    """Whether nobody but the caller can have written there."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


@light.contextmanager
def opened(behind=""):
    """The folder's descriptor, or None."""
    path, fd = folder(behind), None
    try:
        if path:
            with light.suppress(OSError):
                os.makedirs(path, 0o700, exist_ok=True)
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        # Programs cannot be mapped from a file system that is mounted noexec.
        usable = fd is not None and is_own(os.fstat(fd)) and not os.fstatvfs(fd).f_flag & os.ST_NOEXEC
        yield fd if usable else None
    finally:
        if fd is not None:
            os.close(fd)


# ------------------------------------------------------------------------ what it depends on


def has_names(machine):
    """Whether it names files, perhaps relative to the working folder."""
    return bool(machine.add) or os.path.exists(machine.kernel)


def key_of(guest, paranoid, behind=""):
    """What is known before the boot. A snapshot has the same, or is another machine's. behind: tells apart what the
    machine has been told since."""
    return {
        "behind": behind,
        "machine": {k: list(v) if isinstance(v, tuple) else v for k, v in vars(guest.machine).items()},
        "folder": os.getcwd() if has_names(guest.machine) else "",
        "paranoid": paranoid,
        "emulator": guest.program(),
        "build": guest.build,
    }


def name_of(key):
    machine = key["machine"]
    cpus = "x".join(str(machine[k]) for k in ("packages", "cores", "threads"))
    return f"{machine['model']}-{cpus}-{zlib.crc32(text_of(key)):08x}{SUFFIX}"


def text_of(key):
    return repr(key).encode()


def state_of(path):
    """What changes if a file is written or replaced."""
    s = os.stat(path)
    return [s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns]


def content_of(path):
    """What does not change if a file is copied, or comes with an image."""
    import hashlib

    if os.path.isdir(path):
        return hashlib.sha256(os.fsencode("/".join(sorted(os.listdir(path))))).hexdigest()
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        while part := f.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def mapped_files(pid):
    with open(f"/proc/{pid}/maps") as f:
        fields = [line.rstrip("\n").split(None, 5) for line in f]
    return {f[5] for f in fields if len(f) == 6 and f[5].startswith("/")}


def inputs_of(guest, began):
    """The state and content of each file that the boot has read. ValueError: one has changed meanwhile."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = {os.path.abspath(p) for p in guest.inputs} | mapped_files(guest.emulator.pid)
    paths |= {f"{here}/{name}" for name in os.listdir(here) if name.endswith(".py")}
    paths.add(guest.build + RESTORER)
    states = {p: state_of(p) for p in sorted(paths) if not p.startswith(guest.folder + "/")}
    if any(state[-1] >= began for state in states.values()):
        raise ValueError
    return {path: [*state, content_of(path)] for path, state in states.items()}


def have_not_changed(inputs):
    try:
        return all(state_of(path) == state or content_of(path) == content for path, (*state, content) in inputs.items())
    except OSError:
        return False


# ------------------------------------------------------------------------ files


def described(key, inputs):
    """What stands at the end of a snapshot: the key, and a row for each file, all of which end in NUL."""
    rows = [" ".join(map(str, state)) + " " + path for path, state in inputs.items()]
    return b"".join(part + b"\0" for part in (text_of(key), *map(os.fsencode, rows)))


def description_of(fd):
    """The key's text and the files' states. ValueError: it is no snapshot, or not a whole one."""
    s = os.fstat(fd)
    if not stat.S_ISREG(s.st_mode) or not is_own(s) or s.st_size < END.size:
        raise ValueError
    length, size, magic = END.unpack(os.pread(fd, END.size, s.st_size - END.size))
    if magic != MAGIC or size != s.st_size or length > size - END.size:
        raise ValueError
    key, *rows = os.pread(fd, length, size - END.size - length).split(b"\0")[:-1]
    fields = [row.split(b" ", 5) for row in rows]
    return key, {os.fsdecode(path): [*map(int, state), content.decode()] for *state, content, path in fields}


def find(store, key):
    """The descriptor of the snapshot that serves this machine, or None."""
    try:
        fd = os.open(name_of(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=store)
    except OSError:
        return None
    with light.suppress(OSError, ValueError):
        said, inputs = description_of(fd)
        if said == text_of(key) and have_not_changed(inputs):
            with light.suppress(OSError):  # where nothing can be written, nothing is pruned
                os.utime(fd)
            return fd
    os.close(fd)
    return None


@light.contextmanager
def fresh_file(store):
    """A new file without a name, or with one if the file system cannot do without; and its future name."""
    import fcntl

    name = f"{FRESH}{os.getpid()}-{time.monotonic_ns()}"
    try:
        fd, nameless = os.open(".", os.O_RDWR | os.O_TMPFILE, 0o600, dir_fd=store), True
    except OSError:
        fd, nameless = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=store), False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # prune() sees that somebody is writing it
        yield fd, name, nameless
    finally:
        with light.suppress(OSError):
            os.unlink(name, dir_fd=store)
        os.close(fd)


def is_left_behind(store, name):
    """Whether nobody writes this file any more."""
    import fcntl

    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=store)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def prune(store):
    """Removes what is beyond the limit, and what was left half-written."""
    kept = []
    for name in os.listdir(store):
        with light.suppress(OSError):
            if name.startswith(FRESH) and is_left_behind(store, name):
                os.unlink(name, dir_fd=store)
            elif name.endswith(SUFFIX):
                s = os.stat(name, dir_fd=store, follow_symlinks=False)
                kept.append((s.st_mtime_ns, s.st_blocks * 512, name))
    total = 0
    for _, size, name in sorted(kept, reverse=True):
        total += size
        if total > LIMIT:
            with light.suppress(OSError):
                os.unlink(name, dir_fd=store)


# ------------------------------------------------------------------------ machines


def ask(guest, settings, files=()):
    """Whether the emulator answers what it is asked by 0."""
    light.send_fds(guest.requests, [struct.pack("<2I", len(settings), 0) + settings], files)
    return os.read(guest.statuses, 64) == b"0\n"


def take_up(guest, stdout, stderr, paranoid, behind=""):
    """Makes the guest one that continues from a snapshot; False if there is none that serves."""
    with opened(behind) as store:
        image = None if store is None else find(store, key_of(guest, paranoid, behind))
    if image is None:
        return False
    try:
        guest.snapshot_inputs = description_of(image)[1]
        with guest._files(stdout, stderr) as files:
            streams = ",".join(map(str, files))
            guest._spawn([guest.build + RESTORER, str(image), streams, str(os.getpid())], files, {}, image)
    except OSError:
        os.close(guest.statuses)
        guest.requests.close()
        return False
    finally:
        os.close(image)
    if os.read(guest.statuses, 64) and (not behind or ask(guest, b"unchanged\0\0\0")):
        return True
    guest.close(keep=True)  # the next try makes these files again
    return False


def write(guest, store, key):
    with fresh_file(store) as (fd, name, nameless):
        if not ask(guest, b"snapshot", [fd]):
            return
        end = described(key, guest.snapshot_inputs)
        size = os.lseek(fd, 0, os.SEEK_END) + len(end) + END.size
        os.write(fd, end + END.pack(len(end), size, MAGIC))
        os.fdatasync(fd)  # else it could have a name, and after a crash no content
        if nameless:
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=store)
        os.rename(name, name_of(key), src_dir_fd=store, dst_dir_fd=store)
    prune(store)


def has_room(guest, store):
    if store is None or guest.machine.memory > guest.MOST_HELD:
        return False
    space = os.fstatvfs(store)
    return space.f_bavail * space.f_frsize >= SPARE


def keep(guest, began):
    """Takes a snapshot of a guest that began to boot at this time (ns). Without space, there is none."""
    with opened() as store, light.suppress(OSError, ValueError):
        if has_room(guest, store):
            guest.snapshot_inputs = inputs_of(guest, began)
            write(guest, store, key_of(guest, guest.paranoid))


def keep_behind(guest, behind):
    """The same of a guest that has been told something, unless what it had booted from was not kept either, or files have
    changed that it was shown."""
    with opened(behind) as store, light.suppress(OSError, ValueError):
        if guest.snapshot_inputs and has_room(guest, store) and ask(guest, b"unchanged\0\0\0"):
            write(guest, store, key_of(guest, guest.paranoid, behind))
