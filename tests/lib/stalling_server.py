# SPDX-License-Identifier: GPL-2.0-only
"""A file system whose server stops to answer: `stalling_server.py FOLDER FILE…` serves copies of the files
below the folder, read-only, by the protocol of /dev/fuse (linux/fuse.h). Each line of standard input names the
requests that get no answer from then on ("lookup", "getattr", "open", "read", "all", "none"); the reply is the
same line. It runs until its standard input ends."""
import ctypes
import os
import stat
import struct
import sys
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, \
    BATCH_FORGET = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 36, 38, 42
OPCODES = {"lookup": {LOOKUP}, "getattr": {GETATTR}, "open": {OPEN}, "read": {READ}, "none": set(),
           "all": {LOOKUP, GETATTR, OPEN, READ, STATFS, FLUSH, OPENDIR, READDIR}}
IN, OUT = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
ROOT = 1
KEEP_CACHE = 2
MS_NOSUID, MNT_DETACH = 2, 2


def attributes(number, size, mode):
    # ino, size, blocks, atime, mtime, ctime, three times nsec, mode, nlink, uid, gid, rdev, blksize, flags
    return struct.pack("=6Q10I", number, size, size // 512 + 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, device, files):
        self.device = device
        self.files = [(os.path.basename(path), open(path, "rb").read()) for path in files]
        self.stalled = set()

    def attributes(self, node):
        if node == ROOT:
            return attributes(ROOT, 0, stat.S_IFDIR | 0o755)
        return attributes(node, len(self.files[node - 2][1]), stat.S_IFREG | 0o755)

    def answer(self, opcode, node, body):
        """Returns the bytes of the answer, or a negative errno. Nothing is valid for any time, so the kernel asks
        each time."""
        if opcode == INIT:
            return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 32, 0, *[0] * 8)
        if opcode == LOOKUP:
            name = body.split(b"\0")[0].decode()
            nodes = [i + 2 for i, file in enumerate(self.files) if file[0] == name]
            return struct.pack("=4Q2I", nodes[0], 0, 0, 0, 0, 0) + self.attributes(nodes[0]) if nodes else -2
        if opcode == GETATTR:
            return struct.pack("=Q2I", 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("=Q2I", 0, KEEP_CACHE, 0)  # the running program needs its pages
        if opcode == READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            return self.files[node - 2][1][offset:offset + size]
        if opcode == STATFS:
            return struct.pack("=5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if opcode in (FLUSH, RELEASE, RELEASEDIR, READDIR):
            return b""
        return -38

    def run(self):
        while True:
            try:
                request = os.read(self.device, 1 << 18)
            except OSError:
                return
            _, opcode, unique, node = IN.unpack_from(request)[:4]
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT) or opcode in self.stalled:
                continue
            answer = self.answer(opcode, node, request[IN.size:])
            error, data = (answer, b"") if isinstance(answer, int) else (0, answer)
            try:
                os.write(self.device, OUT.pack(OUT.size + len(data), error, unique) + data)
            except OSError:
                pass  # the request was interrupted


def main():
    folder, libc = sys.argv[1], ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    if libc.mount(b"stalling", folder.encode(), b"fuse", MS_NOSUID, options.encode()):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    server = Server(device, sys.argv[2:])
    threading.Thread(target=server.run, daemon=True).start()
    print(os.minor(os.stat(folder).st_dev), flush=True)
    for line in sys.stdin:
        server.stalled = OPCODES[line.strip()]
        print(line.strip(), flush=True)
    libc.umount2(folder.encode(), MNT_DETACH)
    os._exit(0)


main()
