# SPDX-License-Identifier: GPL-2.0-or-later
"""The real cstated on the fake machine.

A test file runs itself on the machine: MachineTest.on() starts it there with the name of one of its functions, which
drives a Daemon and hands back what can be said in JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fakecpu"))
import fakecpu  # noqa: E402  pylint: disable=wrong-import-position

CSTATED = os.environ.get("CSTATED", "cstated")
CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")
PATIENCE = 60
COUNTERS = "-idletrace,-perf"  # what sees the fake machine


def plain_env():
    """The environment without the shim: our own programs run as they are."""
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def sanitized():
    """A sanitizer's shadow is no memory of ours."""
    with open(CSTATED, "rb") as f:
        return b"__asan_init" in f.read()


def until(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %g s for %s" % (patience, what))
        time.sleep(0.05)


class Daemon:
    """Inside: cstated with a database, a socket and a log in a temporary directory; a context manager."""

    def __init__(self, policy="lazy", sources=COUNTERS, interval="500ms", env=None, user=None, listen=()):
        self.listen = listen  # besides the socket
        self.policy, self.sources, self.interval = policy, sources, interval
        self.env = {**plain_env(), **(env or {})}
        self.user = user
        self.stack = tempfile.TemporaryDirectory(prefix="cstated-machine-")
        self.folder = self.stack.name
        self.socket = os.path.join(self.folder, "s")
        self.db = os.path.join(self.folder, "db")
        self.server = None
        self.sampler = 0

    def __enter__(self):
        argv = [CSTATED, "--config", os.devnull, "--db", self.db, "--listen", self.socket, "--interval", self.interval]
        if self.policy is not None:  # None: as it comes
            argv += ["--wake-policy", self.policy]
        if self.sources is not None:
            argv += ["--sources", self.sources]
        for address in self.listen:
            argv += ["--listen", address]
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.server = subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stderr=log, user=self.user,
                                           group=self.user, extra_groups=None if self.user is None else [])
        try:
            until(self.is_up, "cstated to sample")
        except BaseException:
            sys.stderr.write(self.log())
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(10)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        self.stack.cleanup()

    def is_up(self):
        if self.server.poll() is not None:
            raise AssertionError("cstated ended with %d" % self.server.returncode)
        self.sampler = self.find_sampler()
        try:
            return self.sampler and self.samples() and self.json("/api/v1/status").get("cpus")
        except (ValueError, subprocess.SubprocessError):
            return False

    def find_sampler(self):
        with open("/proc/%d/task/%d/children" % (self.server.pid, self.server.pid), encoding="ascii") as f:
            children = f.read().split()
        return int(children[0]) if children else 0

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def samples(self):
        """Samples taken since the ledger was emptied: each asks for the interrupts once."""
        return max((row.count for key, row in fakecpu.ledger(self.sampler).items() if key[0] == "irq"), default=0)

    def wait_samples(self, n, patience=PATIENCE):
        until(lambda: self.samples() >= n, "%d samples" % n, patience)

    def get(self, path):
        return subprocess.run(["curl", "-sS", "--max-time", "30", "--unix-socket", self.socket, "http://localhost" + path],
                              env=plain_env(), capture_output=True, timeout=60, check=True).stdout

    def json(self, path):
        return json.loads(self.get(path))

    def source(self, name):
        return next(s for s in self.json("/api/v1/status")["sources"] if s["name"] == name)

    def snapshot_after(self, n=1):
        """A snapshot that lies at least n whole intervals after this moment."""
        now = time.time() * 1000
        return until(lambda: (s := self.json("/api/v1/snapshot")).get("start", 0) >= now + (n - 1) * s.get("interval_ms", 0) and s,
                     "a fresh snapshot")

    def ctl(self, *args, env=None):
        return subprocess.run([CSTATECTL, "--connect", self.socket, *args], env={**plain_env(), **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


class MachineTest(unittest.TestCase):
    """Outside. The file's main() must be ours."""

    def on(self, scenario, function, *options, timeout=150):
        """Runs a function of the test's file on the machine (a scenario's name or text); returns what it returned."""
        name = scenario
        with tempfile.NamedTemporaryFile("w", prefix="scenario-", encoding="ascii") as f:
            if "\n" in scenario:
                f.write(scenario)
                f.flush()
                name = f.name
            file = os.path.abspath(sys.modules[type(self).__module__].__file__)
            done = fakecpu.run(name, [sys.executable, file, "--inside", function], *options, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        if done.returncode == fakecpu.SKIP:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def near(self, got, want, relative=0.01, what=""):
        self.assertIsNotNone(got, what)
        self.assertLessEqual(abs(got - want), abs(want) * relative, "%s: %r instead of %r" % (what, got, want))


def main():
    """unittest.main(), with meson's 77 where everything was skipped; or the inner half."""
    module = sys.modules["__main__"]
    if sys.argv[1:2] == ["--inside"]:
        json.dump(getattr(module, sys.argv[2])(), sys.stdout)
        return
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    for test, why in result.skipped:
        print("%s: %s" % (test, why))
    sys.exit(fakecpu.SKIP if result.skipped and len(result.skipped) == result.testsRun else 0)
