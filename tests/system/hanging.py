"""A file on a file system (FUSE) of our own, that answers everything until it is told to hang: from then on whoever
opens the file anew and reads more than its first four bytes waits. What had it open or mapped before goes on.

The server is a process of its own, by /dev/fuse's protocol (linux/fuse.h); nothing else is needed but root.
"""

import ctypes
import errno
import os
import select
import signal
import socket
import struct

GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 3, 14, 15, 18, 25, 26
SILENT = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET
NOSUID_NODEV = 6
DETACH = 2
DIRECT_IO_KEEP_CACHE = 3
BEFORE, AFTER = 1, 2  # handles
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def answer_for(opcode, body, content, hangs):
    """(error, bytes), or None: never."""
    if opcode == INIT:
        # version 7.31, as much read ahead as asked, writing 4 KiB at most
        readahead = struct.unpack_from("<I", body, 8)[0]
        return 0, struct.pack("<IIIIHHI40x", 7, 31, readahead, 0, 64, 64, 4096)
    if opcode == GETATTR:
        attributes = struct.pack("<6Q10I", 1, len(content), 0, 0, 0, 0, 0, 0, 0, 0o100755, 1, 0, 0, 0, 4096, 0)
        return 0, struct.pack("<QII", 1000, 0, 0) + attributes
    if opcode == OPEN:
        return 0, struct.pack("<QII", AFTER, DIRECT_IO_KEEP_CACHE, 0) if hangs else struct.pack("<QII", BEFORE, 2, 0)
    if opcode == READ:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return None if handle == AFTER and size > 4 else (0, content[offset : offset + size])
    if opcode in (FLUSH, RELEASE):
        return 0, b""
    return errno.ENOSYS, b""


def serve(fuse, told, content):
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    hangs = False
    while True:
        waiting = [fuse] if hangs else [fuse, told]
        ready, _, _ = select.select(waiting, [], [])
        if told in ready:
            hangs = True
            os.write(told, b"x")
        if fuse not in ready:
            continue
        message = os.read(fuse, 1 << 17)
        _, opcode, unique = struct.unpack_from("<IIQ", message)
        answer = None if opcode in SILENT else answer_for(opcode, message[40:], content, hangs)
        if answer:
            error, data = answer
            os.write(fuse, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)


class HangingFile:
    """The mount at `path`, a file that is there already. Raises OSError where there is none to be had."""

    def __init__(self, path, content):
        self.path = path
        self.pid = 0
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            options = f"fd={fuse},rootmode=100000,user_id=0,group_id=0,allow_other"
            if LIBC.mount(b"firn-test", path.encode(), b"fuse.firn-test", NOSUID_NODEV, options.encode()) < 0:
                raise OSError(ctypes.get_errno(), "a FUSE file system cannot be mounted here")
            pair = socket.socketpair()
            theirs, self.tell = (each.detach() for each in pair)
            self.pid = os.fork()
            if self.pid == 0:
                try:
                    serve(fuse, theirs, content)
                finally:
                    os._exit(0)
            os.close(theirs)
        finally:
            os.close(fuse)

    def hang(self):
        os.write(self.tell, b"x")
        os.read(self.tell, 1)  # from now on it does

    def end(self):
        """Whoever waits gets an error."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
            os.close(self.tell)
            LIBC.umount2(self.path.encode(), DETACH)
