# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers for tests that run on the fake machine (README.md): start it, steer it, read its ledger.

Outside: run(). Inside (a program started by run()): everything else; paths are the kernel's own.
"""

import collections
import errno
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77

Row = collections.namedtuple("Row", "count first prev last first_ns last_ns pid comm")


def run(scenario, command, *options, **kwargs):
    """Runs a command on the machine; returns subprocess's CompletedProcess (returncode 77: not possible here)."""
    return subprocess.run([os.path.join(HERE, "run"), scenario, *options, "--", *command], **kwargs)


def available():
    """None if the fake machine can be had here, else the reason."""
    done = run("skx-2s", ["true"], stderr=subprocess.PIPE, text=True)
    return done.stderr.strip() if done.returncode == SKIP else None


def ctl(name):
    return os.path.join(os.environ["FAKECPU_CTL"], name)


def set_(*statements):
    """Carries out statements; OSError EINVAL where one is wrong."""
    with open(ctl("set"), "wb", buffering=0) as f:
        f.write("\n".join(statements).encode())


def reset_ledger():
    with open(ctl("reset"), "wb", buffering=0) as f:
        f.write(b"1")


def text(path):
    with open(path, "rb", buffering=0) as f:
        return f.read().decode()


def expect():
    """{(metric, scope, id): value}"""
    rows = (line.split("\t") for line in text(ctl("expect")).splitlines())
    return {(metric, scope, id_): float(value) for metric, scope, id_, value in rows}


def counters():
    """{(scope, id, counter): value}, and time_ns and tsc_hz under their names."""
    out = {}
    for line in text(ctl("counters")).splitlines():
        words = line.split()
        if len(words) == 2:
            out[words[0]] = int(words[1])
        elif words[2] == "state":
            out[tuple(words[:3])] = words[3]
        else:
            out[tuple(words[:3])] = int(words[3])
    return out


def ledger(pid=None):
    """{key: Row or int} of one client (None: ourselves): ("msr", cpu, reg), ("idle", cpu, state, file), ("irq", cpu),
    ("energy", zone), ("file", class) -> (opens, reads); and the plain counts under their names, ("wakes", cpu) too."""
    pid = os.getpid() if pid is None else pid
    out = {}
    for line in text(ctl("ledger")).splitlines():
        w = line.split()
        if w[0] in ("write_opens", "pwrites", "sysfs_writes"):
            out[w[0]] = int(w[1])
        elif w[0] == "wakes":
            out["wakes", int(w[1])] = int(w[2])
        elif w[0] == "file":
            if int(w[2]) == pid:
                out["file", w[1]] = (int(w[4]), int(w[5]))
        else:
            n_key = {"msr": 3, "cpuid": 3, "idle": 4, "irq": 2, "energy": 2}[w[0]]
            if int(w[n_key]) != pid:
                continue
            key = [w[0]] + [int(x, 0) if x[0].isdigit() else x for x in w[1:n_key]]
            out[tuple(key)] = Row(*map(int, w[n_key + 2:]), pid=pid, comm=w[n_key + 1])
    return out


class Msr:
    """One CPU's registers on a kept descriptor."""

    def __init__(self, cpu):
        self.fd = os.open("/dev/cpu/%d/msr" % cpu, os.O_RDONLY)

    def __getitem__(self, reg):
        return int.from_bytes(os.pread(self.fd, 8, reg), "little")

    def close(self):
        os.close(self.fd)

    def errno(self, reg, size=8):
        """0, or the errno of reading it."""
        return errno_of(os.pread, self.fd, size, reg)


def errno_of(function, *args):
    try:
        function(*args)
        return 0
    except OSError as e:
        return e.errno


def errno_name(number):
    return errno.errorcode.get(number, "0")


def parse_list(s):
    """The kernel's CPU list."""
    out = []
    for part in filter(None, s.strip().split(",")):
        first, _, last = part.partition("-")
        out.extend(range(int(first), int(last or first) + 1))
    return out
