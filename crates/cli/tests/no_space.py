"""A program in which one call that writes fails as on a full disk, whichever process of it makes the call.

    no_space.py N DIR REPORT [--stay] -- PROGRAM ARGUMENT...

Of the calls that make, fill, rename or sync files below DIR the N-th, counted from 1 over the program and all that it
starts, fails with ENOSPC and is not made; with --stay all that follow it, too. With 0 none fails. DIR has to be a file
system of its own: what lies on it is known by its device, named or not. Exits as the program does. REPORT becomes a
JSON object: pid, calls (how many there were), failed (what the first one that failed was to do).

Each such call waits here for an answer (seccomp_unotify(2), Linux 5.5). Exits 77 where the kernel or the container
does not allow that.
"""

import array
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import socket
import struct
import sys

UNAVAILABLE = 77
# Linux include/uapi/linux/seccomp.h, prctl.h.
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER = 38, 1, 1 << 3
RET_NOTIFY, RET_ALLOW = 0x7FC00000, 0x7FFF0000
RECEIVE, ANSWER = 0xC0502100, 0xC0182101
CONTINUE = 1
SECCOMP = {"x86_64": 317, "aarch64": 277}
CREATE, TMPFILE, AT_FDCWD = 0o100, 0o20000000, -100

# By architecture: number of each call, and how its arguments name the file (below).
CALLS = {
    "x86_64": {
        1: "write", 18: "pwrite64", 20: "writev", 296: "pwritev", 328: "pwritev2", 77: "ftruncate",
        285: "fallocate", 74: "fsync", 75: "fdatasync", 40: "sendfile", 326: "copy_file_range",
        2: "open", 85: "creat", 257: "openat", 83: "mkdir", 258: "mkdirat", 82: "rename", 264: "renameat",
        316: "renameat2", 86: "link", 265: "linkat", 88: "symlink", 266: "symlinkat", 133: "mknod", 259: "mknodat",
    },
    "aarch64": {
        64: "write", 68: "pwrite64", 66: "writev", 70: "pwritev", 287: "pwritev2", 46: "ftruncate",
        47: "fallocate", 82: "fsync", 83: "fdatasync", 71: "sendfile", 285: "copy_file_range",
        56: "openat", 34: "mkdirat", 38: "renameat", 276: "renameat2", 37: "linkat", 36: "symlinkat", 33: "mknodat",
    },
}
# The descriptor that is written or synced, by its place among the arguments.
DESCRIPTOR = {
    "write": 0, "pwrite64": 0, "writev": 0, "pwritev": 0, "pwritev2": 0, "ftruncate": 0, "fallocate": 0, "fsync": 0,
    "fdatasync": 0, "sendfile": 0, "copy_file_range": 2,
}
# The new name: place of the directory's descriptor (none: the working directory), and of the name.
NAME = {
    "open": (None, 0), "creat": (None, 0), "openat": (0, 1), "mkdir": (None, 0), "mkdirat": (0, 1),
    "rename": (None, 1), "renameat": (2, 3), "renameat2": (2, 3), "link": (None, 1), "linkat": (2, 3),
    "symlink": (None, 1), "symlinkat": (1, 2), "mknod": (None, 0), "mknodat": (0, 1),
}
FLAGS = {"open": 1, "openat": 2}


def install(numbers, number_of_seccomp):
    """Has the kernel ask about these calls; the descriptor to be asked on."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, ret = 0x20, 0x15, 0x06
    steps = [(load, 0, 0, 0)]
    for at, number in enumerate(numbers):
        steps.append((equal, len(numbers) - at, 0, number))
    steps += [(ret, 0, 0, RET_ALLOW), (ret, 0, 0, RET_NOTIFY)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return None
    listener = libc.syscall(number_of_seccomp, SET_MODE_FILTER, NEW_LISTENER, program)
    return listener if listener >= 0 else None


def text_at(pid, address):
    """A C string in the memory of a process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        # A page at a time: what lies behind the string may not be mapped.
        found = b""
        while b"\0" not in found and len(found) < 4096:
            found += memory.read(4096 - (address + len(found)) % 4096)
    return os.fsdecode(found.split(b"\0")[0])


def signed(word):
    return struct.unpack("i", struct.pack("I", word & 0xFFFFFFFF))[0]


def target(device, pid, call, words):
    """The file that a call is to write or make on the device; None where it is none of these."""
    if call in DESCRIPTOR:
        link = f"/proc/{pid}/fd/{signed(words[DESCRIPTOR[call]])}"
        if os.stat(link).st_dev != device:
            return None
        return os.readlink(link)
    directory, name = NAME[call]
    flags = words[FLAGS[call]] if call in FLAGS else CREATE
    if not flags & (CREATE | TMPFILE):
        return None
    descriptor = AT_FDCWD if directory is None else signed(words[directory])
    base = f"/proc/{pid}/cwd" if descriptor == AT_FDCWD else f"/proc/{pid}/fd/{descriptor}"
    name = text_at(pid, words[name])
    path = name if name.startswith("/") else os.path.join(base, name)
    above = path if flags & TMPFILE == TMPFILE else os.path.dirname(path) or "/"
    if os.stat(above).st_dev != device:
        return None
    # What is there needs no room to be opened.
    if call in FLAGS and flags & TMPFILE != TMPFILE and os.path.lexists(path):
        return None
    return os.path.join(os.path.realpath(above), os.path.basename(path))


def serve(listener, device, calls, child, wanted, stay):
    """Answers until nobody is left to ask; the report and how the child ended."""
    count, failed, status = 0, None, None
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        events = poll.poll(200)
        if status is None and (ended := os.waitpid(child, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(ended[1])
        if any(event & select.POLLHUP for _, event in events) or (status is not None and not events):
            break
        if not any(event & select.POLLIN for _, event in events):
            continue
        question = array.array("B", bytes(80))
        try:
            fcntl.ioctl(listener, RECEIVE, question)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        ident, pid, _, number, _, _, *words = struct.unpack("QIIiIQ6Q", question)
        refused = False
        try:
            file = target(device, pid, calls[number], words)
        except OSError:
            # It ended meanwhile, or names nothing.
            file = None
        if file is not None:
            count += 1
            refused = wanted > 0 and (count == wanted or stay and count > wanted)
            if refused and failed is None:
                failed = f"{calls[number]} {file}"
        error, flags = (-errno.ENOSPC, 0) if refused else (0, CONTINUE)
        answer = array.array("B", struct.pack("QqiI", ident, 0, error, flags))
        try:
            fcntl.ioctl(listener, ANSWER, answer)
        except OSError as wrong:
            if wrong.errno != errno.ENOENT:
                raise
    if status is None:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"pid": child, "calls": count, "failed": failed}, status


def main():
    ours, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    wanted, directory, report = int(ours[0]), ours[1], ours[2]
    machine = platform.machine()
    if machine not in CALLS:
        return UNAVAILABLE
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        listener = install(sorted(CALLS[machine]), SECCOMP[machine])
        if listener is None:
            os._exit(UNAVAILABLE)
        socket.send_fds(there, [b"x"], [listener])
        os.close(listener)
        there.close()
        os.execv(command[0], command)
    there.close()
    received = socket.recv_fds(here, 1, 1)[1]
    if not received:
        os.waitpid(child, 0)
        return UNAVAILABLE
    said, status = serve(received[0], os.stat(directory).st_dev, CALLS[machine], child, wanted, "--stay" in ours)
    with open(report, "w", encoding="utf-8") as file:
        json.dump(said, file)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
