# SPDX-License-Identifier: GPL-2.0-or-later
"""Where little may be seen it runs on what there is, says what it lacks and why, and makes nothing up (C08)."""

import errno
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from daemonbed import CSTATED, PATIENCE, DaemonTest, UnixConnection, main, status_field, until

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")
FAKE = "-idletrace,-perf"  # these two see the real kernel, also on the fake machine
SKIP = 77
# What stands in for a container: its own users, processes, mounts, network; no device nodes, /sys read-only, no capability.
CONTAINER = r'''
set -e
mount -t tmpfs none /dev
touch /dev/null
mount -o bind /sys /sys
mount -o remount,ro,bind /sys
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$0" "$@"
'''


def by_name(status):
    return {s["name"]: s for s in status["sources"]}


class Degraded(DaemonTest):
    def check_honest(self, lacking):
        """What is lacking has a reason in status; health says degraded for what is denied; no value is made up."""
        status = self.json("/api/v1/status")
        sources = by_name(status)
        denied = [s["name"] for s in status["sources"] if s["state"] in ("denied", "error")]
        for name in lacking:
            self.assertIn(sources[name]["state"], ("absent", "denied"), sources[name])
            self.assertTrue(sources[name]["hint"], sources[name])
        self.assertEqual(status["health"], "degraded" if denied else "ok", status)
        for name in denied:
            self.assertTrue(any(name in p for p in status["problems"]), (name, status["problems"]))
        snapshot = until(lambda: self.get("/api/v1/snapshot")[0] == 200 and self.json("/api/v1/snapshot"), "a snapshot")
        self.assertTrue(snapshot["cpus"])
        if sources["msr"]["state"] != "ok" and sources["perf"]["state"] != "ok" and sources["powercap"]["state"] != "ok":
            for p in snapshot["packages"]:
                self.assertIsNone(p.get("pkg_watts"))
        return sources, snapshot

    def test_container(self):
        unshare = ["unshare", "--mount", "--pid", "--kill-child", "--net", "--uts", "--ipc", "--mount-proc"]
        if os.geteuid() != 0:
            unshare.append("--map-root-user")
        probe = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            self.skipTest("no namespaces here: " + probe.stderr.strip())
        with open(self.log, "ab") as log:
            p = subprocess.Popen([*unshare, "sh", "-c", CONTAINER, CSTATED, "--config", os.devnull, "--db", self.db,
                                  "--listen", self.sock, "--interval", "100ms"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(p)
        self.wait_ready(p)
        sources, snapshot = self.check_honest(["msr", "idletrace"])
        self.assertEqual(sources["stat"]["state"], "ok")
        self.assertTrue(all(c["busy"] is not None for c in snapshot["cpus"]))
        # and it is told in the log, once
        for name in ("msr", "idletrace"):
            self.assertEqual(self.messages().count("source %s: " % name), 1, self.messages())

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_ordinary_user_from_a_shell(self):
        os.chmod(self.dir, 0o777)
        p = self.start(user=65534)
        self.assertEqual(status_field(p.pid, "Uid").split()[0], "65534")
        sources, _ = self.check_honest(["msr", "idletrace"])
        self.assertIn(sources["idletrace"]["state"], ("denied", "absent"))
        self.assertEqual(sources["irq"]["state"], "ok")
        said = subprocess.run([CSTATECTL, "--connect", self.sock, "status"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertIn("idletrace", said.stdout, said.stderr)
        self.assertRegex(said.stdout, r"(?m)^idletrace +(denied|absent) ")


class Lockdown(unittest.TestCase):
    """On the fake machine: a device that root itself may not open."""

    def ask(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run([RUN, "skx-2s", *arguments, "--", sys.executable, os.path.abspath(__file__), "--inside", folder],
                               capture_output=True, text=True, timeout=120, check=False)
            if p.returncode == SKIP:
                self.skipTest(p.stderr.strip())
            self.assertEqual(p.returncode, 0, p.stderr + p.stdout)
            with open(os.path.join(folder, "answers"), encoding="utf-8") as f:
                return json.load(f)

    def test_denied_then_allowed(self):
        a = self.ask()
        msr = by_name(a["status"])["msr"]
        self.assertEqual((msr["state"], msr["errno"]), ("denied", errno.EPERM), msr)
        self.assertIn("lockdown", msr["hint"])
        self.assertEqual(a["status"]["health"], "degraded")
        self.assertTrue(any("msr" in p and "lockdown" in p for p in a["status"]["problems"]), a["status"]["problems"])
        for core in a["snapshot"]["cores"]:
            self.assertIsNone(core.get("c6"))
        # what needs no MSR is as good as ever
        self.assertTrue(all(c["idle"]["C6"]["time"] is not None for c in a["snapshot"]["cpus"]))
        self.assertEqual(a["log"].count("source msr: denied"), 1, a["log"])
        self.assertEqual(by_name(a["after"])["msr"]["state"], "ok")
        self.assertEqual(a["after"]["health"], "ok", a["after"]["problems"])


def statement(text):
    with open(os.path.join(os.environ["FAKECPU_CTL"], "set"), "w", encoding="ascii") as f:
        f.write(text + "\n")


def inside(folder):
    sock = os.path.join(folder, "socket")
    statement("fail msr EPERM")
    log = open(os.path.join(folder, "log"), "wb")
    daemon = subprocess.Popen([CSTATED, "--config", os.devnull, "--db", os.path.join(folder, "db"), "--listen", sock, "--interval", "200ms",
                               "--sources", FAKE], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(path):
        c = UnixConnection(sock)
        try:
            c.request("GET", path)
            r = c.getresponse()
            return json.loads(r.read()) if r.status == 200 else None
        except OSError:
            return None
        finally:
            c.close()

    try:
        snapshot = until(lambda: get("/api/v1/snapshot"), "a snapshot")
        time.sleep(1)  # for what might be told again and again
        answers = {"snapshot": snapshot, "status": get("/api/v1/status")}
        statement("fail msr ok")
        until(lambda: by_name(get("/api/v1/status"))["msr"]["state"] == "ok", "the device to be found again", 60)
        answers["after"] = get("/api/v1/status")
    finally:
        daemon.terminate()
        daemon.wait(10)
    with open(os.path.join(folder, "log"), encoding="utf-8") as f:
        answers["log"] = f.read()
    with open(os.path.join(folder, "answers"), "w", encoding="utf-8") as f:
        json.dump(answers, f)
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2]))
    main()
