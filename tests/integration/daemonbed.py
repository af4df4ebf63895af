# SPDX-License-Identifier: GPL-2.0-or-later
"""The real cstated in a temporary directory, its two processes, and a client that is a plain socket."""

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

CSTATED = os.environ.get("CSTATED", "cstated")
PATIENCE = 15.0  # seconds: how long a test waits for what should take a moment


def until(condition, what, patience=PATIENCE):
    """Polls until condition() is true and returns its value."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %g s for %s" % (patience, what))
        time.sleep(0.02)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def status_field(pid, name):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(name + ":"):
                return line.split(":", 1)[1].strip()
    raise KeyError(name)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def descriptors(pid):
    """What the process has open: {fd: target}."""
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found[int(fd)] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            pass
    return found


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class NotifySocket:
    """What systemd would be told: a datagram socket, in the file system or abstract."""

    def __init__(self, directory, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        name = os.path.join(directory, "notify")
        self.socket.bind("\0" + name if abstract else name)
        if not abstract:
            os.chmod(name, 0o777)
        self.address = ("@" if abstract else "") + name
        self.lines = []
        self.times = {}

    def take(self, timeout=0.0):
        """Reads what is there, waiting for the first message; True if something came."""
        self.socket.settimeout(timeout if timeout > 0 else 0.000001)
        came = False
        while True:
            try:
                text = self.socket.recv(65536).decode()
            except (TimeoutError, socket.timeout, BlockingIOError):
                return came
            came = True
            self.socket.settimeout(0.000001)
            for line in text.splitlines():
                self.lines.append(line)
                self.times.setdefault(line.split("=")[0], []).append(time.monotonic())

    def wait(self, line, patience=PATIENCE):
        end = time.monotonic() + patience
        while not any(l == line or (line.endswith("=") and l.startswith(line)) for l in self.lines):
            if time.monotonic() > end:
                raise AssertionError("no %s within %g s, but %r" % (line, patience, self.lines))
            self.take(0.05)

    def count(self, name):
        return len(self.times.get(name, []))


class DaemonTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cstated-test-")
        self.db = os.path.join(self.dir, "idle.db")
        self.sock = os.path.join(self.dir, "s")
        self.log = os.path.join(self.dir, "log")
        self.running = []

    def tearDown(self):
        for p in self.running:
            if p.poll() is None:
                for child in children(p.pid):
                    os.kill(child, signal.SIGCONT)
                p.kill()
            p.wait()
        if sys.exc_info()[0] is not None and os.path.exists(self.log):
            sys.stderr.write(open(self.log).read())
        shutil.rmtree(self.dir, ignore_errors=True)

    def spawn(self, *args, env=None, cwd=None, user=None, **more):
        """Starts cstated with exactly these options."""
        full = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "SYSTEMD_EXEC_PID", "RUNTIME_DIRECTORY")}
        full.update(env or {})
        log = open(self.log, "ab")
        p = subprocess.Popen([CSTATED, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=full, cwd=cwd, user=user, group=user,
                             extra_groups=[] if user else None, **more)
        log.close()
        self.running.append(p)
        return p

    def start(self, *args, interval="100ms", ready=True, **more):
        """Starts it on this test's database and socket, and waits until it answers with a sample."""
        base = ["--db", self.db, "--listen", self.sock, "--interval", interval]
        p = self.spawn("--config", os.devnull, *base, *args, **more)
        if ready:
            self.wait_ready(p)
        return p

    def wait_ready(self, p):
        def answered():
            if p.poll() is not None:
                raise AssertionError("cstated ended with %d:\n%s" % (p.returncode, self.messages()))
            try:
                status, _, body = self.get("/api/v1/status", timeout=2)
            except OSError:
                return False
            return status == 200 and json.loads(body).get("cpus")

        until(answered, "cstated to answer")

    def messages(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def sampler(self, p):
        return until(lambda: children(p.pid), "the sampler")[0]

    def get(self, path, method="GET", headers=None, body=None, timeout=PATIENCE):
        c = UnixConnection(self.sock, timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def json(self, path, **more):
        status, _, body = self.get(path, **more)
        self.assertEqual(status, 200, body)
        return json.loads(body, parse_constant=lambda c: self.fail("%s in JSON" % c))

    def stop(self, p, number=signal.SIGTERM):
        """Ends it; its exit status."""
        p.send_signal(number)
        return p.wait(PATIENCE)

    def check_database(self):
        """Opens it as another program would."""
        c = sqlite3.connect("file:%s?mode=ro" % self.db, uri=True)
        try:
            self.assertEqual(c.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        finally:
            c.close()

    def refuses(self, *args, status=1, env=None):
        """It must end by itself, with that status; returns what it said."""
        before = len(self.messages()) if os.path.exists(self.log) else 0
        p = self.spawn(*args, env=env)
        self.assertEqual(p.wait(PATIENCE), status, self.messages())
        return self.messages()[before:]


def main():
    """Like unittest.main(), with meson's 77 where everything was skipped."""
    if not os.path.exists(CSTATED):
        print("cstated is not built (CSTATED=%s)" % CSTATED)
        sys.exit(77)
    result = unittest.main(module="__main__", exit=False, verbosity=1).result
    if not result.wasSuccessful():
        sys.exit(1)
    for test, why in result.skipped:
        print("%s: %s" % (test, why))
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)
