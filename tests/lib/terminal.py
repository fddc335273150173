# SPDX-License-Identifier: GPL-2.0-only
"""Reads what a terminal shows, by means of a detached tmux."""
import os
import shlex
import shutil
import subprocess
import tempfile
import time

DEADLINE = 120  # only against a hang: long enough for a busy machine


class Terminal:
    """A terminal that runs one shell command. Use it in a with statement, which removes it."""

    def __init__(self, *command, columns=80, rows=24, **variables):
        self.folder = tempfile.mkdtemp()  # a socket's path has to be short
        self.socket, self.status = os.path.join(self.folder, "tmux"), os.path.join(self.folder, "status")
        settings = {"LC_ALL": "C.UTF-8", "TERM": "xterm", **variables}
        shell = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
        words = command[0] if len(command) == 1 else shlex.join(map(str, command))
        # Python's readline sets LINES and COLUMNS, which ncurses would believe.
        # The pane remains after its command has ended, so that the last screen can be read.
        script = f"unset LINES COLUMNS; export {shell}; {words}; echo $? > {shlex.quote(self.status)}; exec sleep {DEADLINE}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", script)

    def tmux(self, *arguments, check=True):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *arguments], check=check, capture_output=True,
                              text=True, encoding="utf-8").stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A hangup would do, but LeakSanitizer, which looks for leaks at the end, can wait for ever for a process that
        # gets a second one meanwhile.
        self.kill("-KILL")
        self.tmux("kill-server", check=False)  # it ends by itself when its pane has
        shutil.rmtree(self.folder)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options).rstrip("\n")

    def everything(self):
        """Returns the screen and the lines that have scrolled out at the top, with wrapped lines
        joined."""
        return self.screen("-J", "-S", "-")

    def type(self, keys):
        """Types keys as from the keyboard. "\\t" is the Tab key."""
        self.tmux("send-keys", "-l", keys)

    def kill(self, *which):
        """Sends a signal to the terminal's processes, by options of pkill(1)."""
        subprocess.run(["pkill", *which, "--session", self.tmux("display", "-p", "#{pane_pid}").strip()], check=False)

    def terminate(self):
        """Ends nhmtap by SIGTERM, and waits as end() does."""
        self.kill("-TERM", "--exact", "nhmtap")
        return self.end()

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def until(self, seen, look=None):
        """Polls the screen until the condition holds. Returns the screen's text."""
        deadline, pause = time.monotonic() + DEADLINE, 0.02
        while True:
            screen = (look or self.screen)()
            if seen(screen):
                return screen
            assert time.monotonic() < deadline, screen
            if self.ended():  # little more can come through tmux
                deadline = min(deadline, time.monotonic() + 10)
            time.sleep(pause)
            pause = min(0.1, 1.2 * pause)  # each look starts a program

    def still(self, seen):
        """As until(), for a screen that is the same twice: a single look may be at one that is half drawn."""
        before = ""

        def same(shown):
            nonlocal before
            before, last = shown, before
            return shown == last and seen(shown)
        return self.until(same)

    def ended(self):
        return os.path.exists(self.status) and os.path.getsize(self.status)

    def end(self):
        """Waits until the command ends. Returns everything that it left on the terminal."""
        deadline = time.monotonic() + DEADLINE
        while not self.ended():
            assert time.monotonic() < deadline, self.screen()
            time.sleep(0.02)
        time.sleep(0.1)  # the last output may still be on its way through tmux
        return self.everything()
