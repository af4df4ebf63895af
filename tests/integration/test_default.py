# SPDX-License-Identifier: GPL-2.0-or-later
"""`sudo cstated`, nothing configured, on a machine that has never seen it: in a mount namespace with an empty /var/lib, /run and /etc."""

import json
import os
import shutil
import signal
import stat
import subprocess
import unittest

import daemonbed
from daemonbed import CSTATED, DaemonTest, main, status_field, until

SOCKET = "/run/cstated/cstated.sock"
DB = "/var/lib/cstated/cstated.db"

SCRIPT = """
set -e
mount --make-rprivate /
mount -t tmpfs none /var/lib
mount -t tmpfs none /run
mkdir -p /etc/cstated
mount -t tmpfs none /etc/cstated
[ -z "$2" ] || { mount --bind "$2/passwd" /etc/passwd; mount --bind "$2/group" /etc/group; }
exec "$1"
"""


def namespace_works():
    return os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(namespace_works(), "needs root and unshare -m")
class Default(DaemonTest):
    def begin(self, users=""):
        made = not os.path.isdir("/etc/cstated")
        log = open(self.log, "ab")
        p = subprocess.Popen(["unshare", "-m", "bash", "-c", SCRIPT, "cstated-test", os.path.abspath(CSTATED), users], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.running.append(p)
        if made:
            self.addCleanup(lambda: os.path.isdir("/etc/cstated") and not os.listdir("/etc/cstated") and os.rmdir("/etc/cstated"))
        # its own view of the tree
        self.sock = "/proc/%d/root%s" % (p.pid, SOCKET)
        self.wait_ready(p)
        return p

    def seen(self, p, path):
        return os.stat("/proc/%d/root%s" % (p.pid, path))

    def test_without_a_user(self):
        p = self.begin()
        self.assertEqual(stat.S_IMODE(self.seen(p, SOCKET).st_mode), 0o660)
        self.assertTrue(stat.S_ISREG(self.seen(p, DB).st_mode))
        self.assertEqual(status_field(p.pid, "Uid").split(), ["0"] * 4)
        self.assertEqual(int(status_field(p.pid, "CapEff"), 16), 0)
        self.assertTrue(any("uid 0" in n for n in self.json("/api/v1/status")["notes"]))
        self.assertEqual(self.stop(p), 0)

    def test_with_the_user(self):
        for name, line in (("passwd", "cstated:x:987:986::/:/usr/sbin/nologin\n"), ("group", "cstated:x:986:\n")):
            with open("/etc/" + name) as f, open(os.path.join(self.dir, name), "w") as g:
                g.write("".join(l for l in f if not l.startswith("cstated:")) + line)
        p = self.begin(self.dir)
        self.assertEqual(status_field(p.pid, "Uid").split(), ["987"] * 4)
        self.assertEqual(status_field(p.pid, "Gid").split(), ["986"] * 4)
        self.assertEqual(int(status_field(p.pid, "CapEff"), 16), 0)
        for path in (SOCKET, DB, os.path.dirname(SOCKET), os.path.dirname(DB)):
            self.assertEqual((self.seen(p, path).st_uid, self.seen(p, path).st_gid), (987, 986), path)
        self.assertEqual(stat.S_IMODE(self.seen(p, os.path.dirname(DB)).st_mode), 0o750)
        self.assertEqual(self.json("/api/v1/status")["health"], "ok")
        self.assertEqual(self.stop(p), 0)


if __name__ == "__main__":
    main()
