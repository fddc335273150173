# SPDX-License-Identifier: GPL-2.0-only
"""Runs one command in a guest up to where it waits, and from there on any number of times, each in a fork of the
machine. So each goes on from the same state, whatever ran before it, and several can run at a time.

The command runs as the guest's root. Where it waits, it writes the byte READY to the port WORD, which tells the host,
and reads from the ports REQUESTS, at which the whole machine stands still: four bytes with a length, then as many more.
It first stops its parent, src/guest/here.c, which would take these bytes for its own. If it writes the byte DONE there,
it has answered: the machine ends, with status 0. Of the folders for temporary files the command sees only what leads to
its words, the working and the home folder, and those of PATH.

A client connects to a socket, sends the messages for the command as a JSON list of texts and shuts its side down. All
but the last message lead to a machine in which the command waits again; it is kept for further clients whose messages
begin alike. The last one is answered by what the command writes until it ends, and a line with its status and errors;
if it is null, there is no answer but this line.

Where the command waits for its first or second message, a snapshot is taken (snapshots.py). The next run that tells the
same continues there, if all that the command has seen of the host's files is as it was.
"""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import select
import socket
import struct
import threading

import here
import nehalem
import snapshots

READY, DONE = b"4", b"5"
MOST_KEPT = 8  # machines beside the first one
MOST_BEFORE_SNAPSHOT = 1  # messages


class Waiting:
    """A machine in which the command waits, or why there is none."""

    def __init__(self, guest, failure=""):
        self.guest = guest
        self.failure = failure
        self.users = 0


def send(guest, message):
    while message:
        select.select([], [guest.requests], [])
        message = message[guest.requests.send(message):]


def tell(guest, text):
    """Sends the command what it waits for: one byte a word, since /dev/port reads bytes."""
    data = text.encode()
    data = struct.pack("<I", len(data)) + data
    words = struct.pack(f"<{len(data)}I", *data)
    send(guest, struct.pack("<2I", 0, len(words)) + words)


def outcome(guest, client=None):
    """READY, or the status of the command that has ended. None: the client has gone away."""
    said = b""
    poll = select.poll()
    poll.register(guest.statuses, select.POLLIN)
    if client:
        poll.register(client, 0)  # for POLLHUP alone
    while True:
        if not any(fd == guest.statuses for fd, _ in poll.poll()):
            return None
        part = os.read(guest.statuses, here.CHUNK)
        if not part:
            raise guest._death("the command")
        *lines, said = (said + part).split(b"\n")
        for line in lines:
            if line.startswith(b"!"):
                guest.notes.append(os.fsdecode(line[1:]))
            elif line == b"=" + READY:
                return READY
            elif line == b"=" + DONE:
                return 0
            elif not line.startswith(b"="):
                return int(line)


class Forks:
    def __init__(self, make, beginning, snapshots):
        """make: makes a guest, from a snapshot behind what is given. beginning: of the command. snapshots: whether they
        are used."""
        self.lock = threading.Lock()
        self.maker = concurrent.futures.ThreadPoolExecutor(1)  # an emulator ends with the thread that has started it
        self.make = lambda *behind: self.maker.submit(make, *behind).result()
        self.beginning = beginning
        self.snapshots = snapshots
        self.kept = {}
        self.writers = []

    def _until_ready(self, guest):
        try:
            status = outcome(guest)
        except nehalem.Trouble as trouble:
            return Waiting(guest, str(trouble))
        said = "" if status == READY else f"it ended with status {status}: {guest._said(0)}{guest._said(1)}"
        return Waiting(guest, said)

    def take(self, messages):
        """The machine in which the command waits after these messages. One at a time is made."""
        with self.lock:
            waiting = self._at(messages)
            waiting.users += 1
            return waiting

    def give_back(self, waiting):
        with self.lock:
            waiting.users -= 1

    def _at(self, messages):
        if messages not in self.kept:
            waiting = self._continued(messages)
            if not waiting:
                before = self._at(messages[:-1]) if messages else None
                if before and before.failure:
                    return before
                waiting = self._led_on(before.guest, messages[-1]) if before else self._begun()
                self._keep(messages, waiting)
            self.kept[messages] = waiting
        return self.kept[messages]

    def _begun(self):
        try:
            guest = self.make()
        except nehalem.Trouble as trouble:
            return Waiting(None, str(trouble))
        send(guest, self.beginning.message)
        return self._until_ready(guest)

    def _led_on(self, before, message):
        self._make_room()
        guest = before.fork()
        tell(guest, message)
        return self._until_ready(guest)

    def _continued(self, messages):
        """What goes on from a snapshot, or None."""
        if self.snapshots and len(messages) <= MOST_BEFORE_SNAPSHOT:
            with contextlib.suppress(nehalem.NoSnapshot):
                return Waiting(self.make(self.beginning.key(messages)))
        return None

    def _keep(self, messages, waiting):
        """Has a fork write a snapshot meanwhile."""
        if self.snapshots and len(messages) <= MOST_BEFORE_SNAPSHOT and not waiting.failure:
            writer = threading.Thread(target=self._write, args=(waiting.guest.fork(), self.beginning.key(messages)))
            self.writers.append(writer)
            writer.start()

    def _write(self, guest, key):
        with guest:
            snapshots.keep_behind(guest, key)

    def close(self, keep):
        for writer in self.writers:
            writer.join()
        for guest in filter(None, (waiting.guest for waiting in self.kept.values())):
            guest.kept = keep
            guest.close()

    def _make_room(self):
        idle = [m for m, w in self.kept.items() if m and not w.users and not any(o[:-1] == m for o in self.kept)]
        for messages in idle[: max(0, len(self.kept) - MOST_KEPT)]:
            self.kept.pop(messages).guest.close()

    def answer(self, client):
        with client:
            request = b"".join(iter(lambda: client.recv(here.CHUNK), b""))
            *path, last = json.loads(request)
            waiting = self.take(tuple(path))
            try:
                end = self._go_on(waiting, last, client)
            except nehalem.Trouble as trouble:
                end = {"status": trouble.status, "errors": str(trouble)}
            finally:
                self.give_back(waiting)
            with contextlib.suppress(OSError):  # it has gone away
                client.sendall(b"\n" + json.dumps(end).encode())

    def _go_on(self, waiting, message, client):
        if message is None:
            return {"status": 0, "errors": ""}
        if waiting.failure:
            return {"status": nehalem.Trouble.status, "errors": waiting.failure}
        with self.lock:
            guest = waiting.guest.fork(stdout=client)
            tell(guest, message)
        with guest:
            status = outcome(guest, client)
            return {"status": status, "errors": guest._said(1), "notes": guest.notes}


def shared_folders():
    """Those for temporary files. What other programs have there would change what the guest's kernel counts."""
    return sorted({os.path.realpath(path) for path in ("/tmp", os.environ.get("TMPDIR") or "/tmp")})


class Beginning:
    """What starts the command in a guest."""

    def __init__(self, command, user, settings, surroundings):
        self.message = b""
        said = [("shared", path) for path in shared_folders()] + [("know", path) for path in here.likely_paths(command)]
        for name, path in said:
            setting = nehalem.padded(os.fsencode(f"{name}={path}"))
            self.message += struct.pack("<2I", len(setting), 0) + setting
        none = [False] * 3
        ordered = here.order(command, user, (), here.Terminal(none), none, surroundings)
        self.same_in_all_runs = repr((self.message, here.without_run_id(ordered), str(settings)))
        self.message += here.request(["here", "run"], ordered, settings)

    def key(self, messages):
        """Tells apart what a guest has been told."""
        return hashlib.sha256(repr((self.same_in_all_runs, messages)).encode()).hexdigest()


def serve(forks, listener, lifeline):
    """Until the other end of the lifeline is closed."""
    while True:
        ready, _, _ = select.select([listener, lifeline], [], [])
        if lifeline in ready and not os.read(lifeline, 1):
            return
        if listener in ready:
            client, _ = listener.accept()
            threading.Thread(target=forks.answer, args=(client,), daemon=True).start()


def listen(path):
    """Who sees the socket can connect to it: it gets its name when it listens."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(64)
    os.link(path + ".new", path)
    os.unlink(path + ".new")
    return listener


def take_lifeline():
    """Standard input, of which the command gets nothing."""
    lifeline = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return lifeline
