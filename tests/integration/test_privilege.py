# SPDX-License-Identifier: GPL-2.0-or-later
"""Who the two processes are, and what each of them holds."""

import os
import pwd
import socket
import stat
import subprocess
import unittest

from daemonbed import CSTATED, DaemonTest, descriptors, main, status_field, until

NOBODY = 65534
EMPTY = 0
SAMPLER_MAY = 1 << 17 | 1 << 2 | 1 << 38 | 1 << 39  # SYS_RAWIO, DAC_READ_SEARCH, PERFMON, BPF


def caps(pid, name):
    return int(status_field(pid, name), 16)


def listening_inodes():
    inodes = set()
    with open("/proc/net/unix") as f:
        for line in f.readlines()[1:]:
            words = line.split()
            if int(words[3], 16) & 0x10000:
                inodes.add(words[6])
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table) as f:
                inodes.update(l.split()[9] for l in f.readlines()[1:] if l.split()[3] == "0A")
    return inodes


def user_namespaces():
    return subprocess.run(["unshare", "-r", "true"], capture_output=True).returncode == 0


class Privilege(DaemonTest):
    def test_server_has_no_capability(self):
        p = self.start()
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(caps(p.pid, name), EMPTY, name)
        self.assertEqual(status_field(p.pid, "NoNewPrivs"), "1")
        if os.geteuid() == 0:
            self.assertEqual(caps(p.pid, "CapBnd"), EMPTY)

    def test_sampler_has_few(self):
        p = self.start()
        sampler = self.sampler(p)
        for name in ("CapPrm", "CapEff"):
            self.assertEqual(caps(sampler, name) & ~SAMPLER_MAY, 0, name)
        self.assertEqual(status_field(sampler, "NoNewPrivs"), "1")

    def test_each_holds_its_own(self):
        p = self.start("--listen", os.path.join(self.dir, "second"))
        sampler = self.sampler(p)
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] > 1, "ticks")
        listening = listening_inodes()
        for fd, target in descriptors(sampler).items():
            self.assertFalse(target.startswith(self.db), "%d -> %s" % (fd, target))
            if target.startswith("socket:["):
                self.assertNotIn(target[8:-1], listening)
        server = descriptors(p.pid)
        self.assertTrue(any(t == self.db for t in server.values()))
        self.assertEqual(sum(t[8:-1] in listening for t in server.values() if t.startswith("socket:[")), 2)
        for target in server.values():
            self.assertFalse(target.startswith(("/dev/cpu", "/sys/devices/system/cpu")), target)

    def test_nothing_of_the_shell_is_kept(self):
        held = os.path.join(self.dir, "held")
        fd = os.open(held, os.O_CREAT | os.O_RDWR)
        mine, peer = socket.socketpair()
        config = os.open(os.path.join(self.dir, "conf"), os.O_CREAT | os.O_RDWR)
        try:
            os.write(config, b"[Http]\nMaxConnections=17\n")
            p = self.spawn("--config", "/dev/fd/%d" % config, "--db", self.db, "--listen", self.sock,
                           "--interval", "100ms", pass_fds=(fd, peer.fileno(), config))
            self.wait_ready(p)
            inode = os.readlink("/proc/self/fd/%d" % peer.fileno())
            for pid in (p.pid, self.sampler(p)):
                targets = descriptors(pid).values()
                self.assertNotIn(held, targets)
                self.assertNotIn(inode, targets)
            peer.close()
            mine.settimeout(5)
            self.assertEqual(mine.recv(1), b"")  # nobody holds the other end
        finally:
            os.close(fd)
            os.close(config)
            mine.close()
            peer.close()

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_takes_the_owner_of_the_directory(self):
        os.chown(self.dir, NOBODY, NOBODY)
        p = self.start()
        self.assertEqual(status_field(p.pid, "Uid").split(), [str(NOBODY)] * 4)
        self.assertEqual(status_field(p.pid, "Gid").split(), [str(NOBODY)] * 4)
        self.assertEqual(caps(p.pid, "CapEff"), EMPTY)
        self.assertEqual(status_field(self.sampler(p), "Uid").split(), ["0"] * 4)
        self.assertEqual(os.stat(self.db).st_uid, NOBODY)
        self.assertEqual(os.stat(self.sock).st_uid, NOBODY)
        self.assertFalse(any("uid 0" in n for n in self.json("/api/v1/status")["notes"]))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_never_keeps_the_group_of_root(self):
        """A directory that was only given to a user is still of root's group."""
        os.chown(self.dir, NOBODY, 0)
        p = self.start()
        self.assertEqual(status_field(p.pid, "Uid").split(), [str(NOBODY)] * 4)
        self.assertEqual(status_field(p.pid, "Gid").split(), [str(pwd.getpwuid(NOBODY).pw_gid)] * 4)
        self.assertNotIn("0", status_field(p.pid, "Groups").split())

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_root_says_that_it_stays_root(self):
        p = self.start()
        self.assertEqual(status_field(p.pid, "Uid").split(), ["0"] * 4)
        self.assertTrue(any("uid 0 with empty capability sets" in n for n in self.json("/api/v1/status")["notes"]))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_makes_directories(self):
        self.db = os.path.join(self.dir, "var", "lib", "idle.db")
        self.sock = os.path.join(self.dir, "run", "cstated", "s")
        self.start()
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(self.db)).st_mode), 0o750)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(self.sock)).st_mode), 0o755)
        self.assertEqual(stat.S_IMODE(os.stat(self.sock).st_mode), 0o660)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_ordinary_user(self):
        """Without any privilege it runs, and what it may not see is named with what would help."""
        os.chown(self.dir, NOBODY, NOBODY)
        p = self.start(user=NOBODY)
        self.assertEqual(caps(self.sampler(p), "CapEff"), 0)
        for s in self.json("/api/v1/status")["sources"]:
            if s["state"] in ("denied", "error", "absent"):
                self.assertTrue(s["hint"], s)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_database_out_of_reach(self):
        """A database that cannot be written is told, and sampling goes on in memory."""
        closed = os.path.join(self.dir, "closed")
        os.mkdir(closed, 0o700)
        os.chmod(self.dir, 0o777)
        self.db = os.path.join(closed, "idle.db")
        self.start(user=NOBODY)
        status = self.json("/api/v1/status")
        self.assertEqual(status["health"], "degraded")
        self.assertTrue(status["problems"])
        self.assertEqual(self.messages().count("store degraded"), 1)
        snapshot = until(lambda: self.get("/api/v1/snapshot")[0] == 200, "a snapshot")
        self.assertTrue(snapshot)

    @unittest.skipUnless(user_namespaces(), "needs user namespaces (unshare -r)")
    def test_user_namespace(self):
        """Root of a user namespace, as in a container without privileges: degraded, and it says why."""
        if os.geteuid() == 0:
            os.chown(self.dir, 1234, 1234)
            os.chmod(self.dir, 0o777)
        log = open(self.log, "ab")
        p = subprocess.Popen(["unshare", "-r", os.path.abspath(CSTATED), "--config", os.devnull, "--db", self.db, "--listen", self.sock,
                              "--interval", "100ms"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.running.append(p)
        self.wait_ready(p)
        status = self.json("/api/v1/status")
        self.assertTrue(any("uid 0 with empty capability sets" in n for n in status["notes"]), status["notes"])
        self.assertEqual(caps(p.pid, "CapEff"), EMPTY)
        for s in status["sources"]:
            self.assertTrue(s["state"] == "ok" or s["hint"], s)
        self.assertEqual(self.stop(p), 0)


if __name__ == "__main__":
    main()
