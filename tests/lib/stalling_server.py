# SPDX-License-Identifier: GPL-2.0-only
"""A file system whose server stops to answer: `stalling_server.py FOLDER FILE…` serves copies of the files
below the folder by the protocol of /dev/fuse (linux/fuse.h). Files, FIFOs and sockets can be created there, written
and renamed, and are kept in memory; there are no other folders. Each line of standard input names the
requests that get no answer from then on: those of OPCODES. "none" ends that, and gives the answers that
are due. The reply is the same line; to "waiting" it is the number of requests that wait. It runs until its standard input ends."""
import ctypes
import os
import stat
import struct
import sys
import threading

LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, UNLINK, RENAME, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, \
    OPENDIR, READDIR, RELEASEDIR, CREATE, INTERRUPT, DESTROY, BATCH_FORGET, RENAME2 = \
    1, 2, 3, 4, 8, 10, 12, 14, 15, 16, 17, 18, 20, 25, 26, 27, 28, 29, 35, 36, 38, 42, 45
OPCODES = {"lookup": {LOOKUP}, "getattr": {GETATTR}, "open": {OPEN, CREATE}, "read": {READ}, "none": set(),
           "write": {WRITE}, "setattr": {SETATTR}, "rename": {RENAME, RENAME2}, "unlink": {UNLINK}, "flush": {FLUSH},
           "fsync": {FSYNC}, "statfs": {STATFS}, "release": {RELEASE}, "mknod": {MKNOD},
           "list": {OPENDIR, READDIR},
           "all": {LOOKUP, GETATTR, SETATTR, MKNOD, OPEN, CREATE, READ, WRITE, STATFS, FLUSH, OPENDIR, READDIR, RENAME, RENAME2,
                   UNLINK, FSYNC}}
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
        self.names, self.contents, self.modes = {}, {}, {}
        for path in files:
            self.create(os.path.basename(path), open(path, "rb").read())
        self.stalled, self.waiting, self.lock = set(), [], threading.Lock()

    def create(self, name, content=b"", mode=stat.S_IFREG):
        node = len(self.contents) + 2
        self.names[name], self.contents[node], self.modes[node] = node, bytearray(content), stat.S_IFMT(mode)
        return node

    def attributes(self, node):
        if node == ROOT:
            return attributes(ROOT, 0, stat.S_IFDIR | 0o777)
        return attributes(node, len(self.contents[node]), self.modes[node] | 0o777)

    def entry(self, node):
        return struct.pack("=4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def rename(self, names):
        old, new = (name.decode() for name in names.split(b"\0")[:2])
        self.names[new] = self.names.pop(old)
        return b""

    def set_size(self, node, body):
        valid, _, _, size = struct.unpack_from("=IIQQ", body)
        if valid & 8:  # FATTR_SIZE
            content = self.contents[node]
            del content[size:]
            content.extend(bytes(size - len(content)))
        return struct.pack("=Q2I", 0, 0, 0) + self.attributes(node)

    def write(self, node, body):
        _, offset, size = struct.unpack_from("=QQI", body)
        content = self.contents[node]
        content.extend(bytes(max(0, offset - len(content))))
        content[offset:offset + size] = body[40:40 + size]
        return struct.pack("=II", size, 0)

    def list(self, offset):
        """Returns all names at once."""
        names = [(name.encode(), node) for name, node in self.names.items()] if not offset else []
        return b"".join(struct.pack("=QQII", node, i + 1, len(name), self.modes[node] >> 12) + name + bytes(-len(name) % 8)
                        for i, (name, node) in enumerate(names))

    def answer(self, opcode, node, body):
        """Returns the bytes of the answer, or a negative errno. Nothing is valid for any time, so the kernel asks
        each time."""
        if opcode == INIT:
            return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 32, 0, *[0] * 8)
        if opcode == LOOKUP:
            name = body.split(b"\0")[0].decode()
            return self.entry(self.names[name]) if name in self.names else -2
        if opcode == GETATTR:
            return struct.pack("=Q2I", 0, 0, 0) + self.attributes(node)
        if opcode == MKNOD:
            return self.entry(self.create(body[16:].split(b"\0")[0].decode(), mode=struct.unpack_from("=I", body)[0]))
        if opcode == CREATE:
            return self.entry(self.create(body[16:].split(b"\0")[0].decode())) + struct.pack("=Q2I", 0, KEEP_CACHE, 0)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("=Q2I", 0, KEEP_CACHE, 0)  # the running program needs its pages
        if opcode == READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            return bytes(self.contents[node][offset:offset + size])
        if opcode == WRITE:
            return self.write(node, body)
        if opcode == SETATTR:
            return self.set_size(node, body)
        if opcode in (RENAME, RENAME2):
            return self.rename(body[8 if opcode == RENAME else 16:])
        if opcode == UNLINK:
            return b"" if self.names.pop(body.split(b"\0")[0].decode(), None) else -2
        if opcode == STATFS:
            return struct.pack("=5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if opcode == READDIR:
            return self.list(struct.unpack_from("=QQ", body)[1])
        if opcode in (FLUSH, RELEASE, RELEASEDIR, FSYNC):
            return b""
        return -38

    def reply(self, request):
        _, opcode, unique, node = IN.unpack_from(request)[:4]
        answer = self.answer(opcode, node, request[IN.size:])
        error, data = (answer, b"") if isinstance(answer, int) else (0, answer)
        try:
            os.write(self.device, OUT.pack(OUT.size + len(data), error, unique) + data)
        except OSError:
            pass  # the request was interrupted

    def stall(self, opcodes):
        """Requests that wait get their answers when nothing stalls any more."""
        with self.lock:
            self.stalled = opcodes
            while not opcodes and self.waiting:
                self.reply(self.waiting.pop(0))

    def run(self):
        while True:
            try:
                request = os.read(self.device, 1 << 18)
            except OSError:
                return
            opcode = IN.unpack_from(request)[1]
            with self.lock:
                if opcode in self.stalled:
                    self.waiting.append(request)
                elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
                    self.reply(request)


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
        if line == "waiting\n":
            print(len(server.waiting), flush=True)
            continue
        server.stall(OPCODES[line.strip()])
        print(line.strip(), flush=True)
    libc.umount2(folder.encode(), MNT_DETACH)
    os._exit(0)


main()
