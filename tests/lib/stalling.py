# SPDX-License-Identifier: GPL-2.0-only
"""A mount whose server stops to answer when told: stalling_server.py."""
import os
import subprocess
import sys

from records import HERE


class Mount:
    def __init__(self, folder, *files):
        self.folder = folder
        folder.mkdir()
        self.server = subprocess.Popen([sys.executable, os.path.join(HERE, "lib", "stalling_server.py"), folder, *files],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline()

    def stall(self, operation):
        self.server.stdin.write(operation + "\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline() == operation + "\n"

    def is_waited_for(self):
        self.server.stdin.write("waiting\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline()) > 0

    def kill(self):
        """The kernel ends all requests with the last descriptor of its device."""
        self.server.kill()
        self.server.wait()

    def unmount(self):
        subprocess.run(["umount", "-l", self.folder], check=True)

    def end(self):
        self.kill()
        # Blanks in a path are octal numbers there.
        folder = str(self.folder).replace(" ", "\\040")
        if f" {folder} " in open("/proc/self/mountinfo", encoding="utf-8").read():
            self.unmount()
