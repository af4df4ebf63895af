# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts beneath ext4: the database lies on a loop device over cutdisk.c, a disk with a volatile write cache that
keeps what a cut at some random write or flush would have left. Each such image is mounted (the journal is replayed),
checked by e2fsck, and opened: the database is whole, every value is the one appended, at most 60 s are missing of what
had been appended when the cut came; 20 s with DurableHead=10s. The open minute's file is gone with the power.

CSTATED_CUTS=N: that many cuts, and the daemon itself on such a disk for three minutes."""

import glob
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

CUTDISK = os.environ.get("CUTDISK", "cutdisk")
STORE_WRITER = os.environ.get("STORE_WRITER", "store-writer")
CSTATED = os.environ.get("CSTATED", "cstated")
CUTS = int(os.environ.get("CSTATED_CUTS", "24"))
LONG = "CSTATED_CUTS" in os.environ
INNER = "CSTATED_TEST_INNER"
IMAGE_BYTES = 32 << 20


def run(*args, **more):
    r = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **more)
    if r.returncode != 0:
        raise AssertionError("%s: %d\n%s" % (" ".join(args), r.returncode, r.stdout.decode(errors="replace")))
    return r.stdout.decode(errors="replace")


class PowerCut(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cstated-test-")
        run("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", self.dir)
        for name in ("fuse", "fs", "run", "cuts", "again"):
            os.mkdir(self.path(name))
        self.progress = self.path("progress")
        open(self.progress, "wb").close()
        self.disk = None

    def tearDown(self):
        for name in ("fs", "again", "fuse"):
            subprocess.run(["umount", "-q", "-l", self.path(name)], stderr=subprocess.DEVNULL)
        if self.disk:
            try:
                self.disk.wait(10)
            except subprocess.TimeoutExpired:
                self.disk.kill()
                self.disk.wait()
        run("umount", "-l", self.dir)
        os.rmdir(self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def begin(self, one_in, cuts, seed):
        """An empty ext4 on a disk that is going to lose power."""
        image = self.path("empty.img")
        with open(image, "wb") as f:
            f.truncate(IMAGE_BYTES)
        with open(self.progress, "r+b") as f:
            f.write(struct.pack("=Q", 0))
        for name in os.listdir(self.path("run")):
            os.unlink(self.path("run", name))
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4",
            "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        self.disk = subprocess.Popen([CUTDISK, image, self.path("fuse"), self.path("cuts"), self.progress, str(one_in),
                                      str(cuts), str(seed)])
        end = time.monotonic() + 10
        while not os.path.exists(self.path("fuse", "disk")):
            self.assertLess(time.monotonic(), end, "cutdisk does not serve")
            time.sleep(0.01)
        run("mount", "-o", "loop", self.path("fuse", "disk"), self.path("fs"))

    def end(self):
        """The disk is taken away; what the cuts left: [(image, ticks appended)]."""
        run("umount", self.path("fs"))
        run("umount", self.path("fuse"))
        self.assertEqual(self.disk.wait(10), 0, "the disk could not keep its images")
        self.disk = None
        numbers = re.compile(r"cut-(\d+)-(\d+)\.img$")
        images = [(p, *map(int, numbers.search(p).groups())) for p in glob.glob(self.path("cuts", "*.img"))]
        return [(p, appended) for p, _, appended in sorted(images, key=lambda i: i[1])]

    def mounted(self, image, look):
        """What look() makes of the file system after the power is back."""
        run("mount", "-o", "loop", image, self.path("again"))
        try:
            return look(self.path("again", "store.db"))
        finally:
            run("umount", self.path("again"))
            run("e2fsck", "-f", "-n", image)  # else the disk, not the store, would be what is tested

    def opened(self, db):
        """(first, last) tick, each value compared; 0 where there is nothing yet."""
        runtime = tempfile.mkdtemp(dir=self.dir)
        try:
            first, last = run(STORE_WRITER, "check", db, runtime).split()
        finally:
            shutil.rmtree(runtime)
        self.assertEqual(self.integrity(db), "ok")
        return int(first), int(last)

    def integrity(self, db):
        c = sqlite3.connect(db)
        try:
            return c.execute("PRAGMA integrity_check").fetchone()[0]
        finally:
            c.close()

    def cuts(self, durable_s, allowed_s, seed):
        """CUTS of them, in runs of forty: the images take room."""
        runs = [self.one_run(durable_s, allowed_s, min(40, CUTS), 2 * i + seed) for i in range(max(CUTS // 40, 1))]
        n, worst, expired = sum(r[0] for r in runs), max(r[1] for r in runs), sum(r[2] for r in runs)
        print("DurableHead=%d: %d cuts, at most %d s lost, %d after rows had expired" % (durable_s, n, worst, expired))
        return worst

    def one_run(self, durable_s, allowed_s, cuts, seed):
        minutes = 300  # a checkpoint or more, rows that expire
        commits = minutes * (60 // durable_s if durable_s else 1)
        self.begin(max(commits * 4 // cuts, 2), cuts, seed)  # a commit is about four writes and flushes
        run(STORE_WRITER, "write", self.path("fs", "store.db"), self.path("run"), self.progress, str(minutes * 60 + 30),
            str(durable_s))
        worst = expired = 0
        images = self.end()
        for image, appended in images:
            first, last = self.mounted(image, self.opened)
            # a commit under way may hold the tick that was being appended
            self.assertLessEqual(last, appended + 1)
            self.assertLess(appended - last, allowed_s, image)
            worst = max(worst, appended - last)
            expired += first > 1
            os.unlink(image)
        self.assertGreater(len(images), cuts // 4)
        self.assertGreater(expired, 0)
        return len(images), worst, expired

    def test_power_cut(self):
        self.assertGreater(self.cuts(0, 60, 1), 40)

    def test_power_cut_with_durable_head(self):
        self.assertGreater(self.cuts(10, 20, 2), 5)

    @unittest.skipUnless(LONG, "three minutes of the daemon: CSTATED_CUTS=N")
    def test_daemon(self):
        """Against the clock: less than 60 s, the tick that was under way, and a moment for writing the image."""
        self.begin(2, CUTS, 3)
        log = open(self.path("log"), "wb")
        started = time.time()
        daemon = subprocess.Popen([CSTATED, "--config", os.devnull, "--db", self.path("fs", "store.db"),
                                   "--listen", self.path("s"), "--interval", "100ms"],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  env={**os.environ, "RUNTIME_DIRECTORY": self.path("run")})
        try:
            time.sleep(200)
            self.assertIsNone(daemon.poll(), open(self.path("log")).read())
        finally:
            daemon.kill()
            daemon.wait()
            log.close()
        time.sleep(1)  # the sampler sees the end of its socket
        worst, full = 0, 0

        def newest(db):
            if not os.path.exists(db):
                return 0
            self.assertEqual(self.integrity(db), "ok")
            c = sqlite3.connect(db)
            try:
                if c.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'chunk'").fetchone()[0] == 0:
                    return 0
                return 1e-6 * (c.execute("SELECT max(t1) FROM chunk").fetchone()[0] or 0)
            finally:
                c.close()

        images = self.end()
        for image, _ in images:
            at = os.stat(image).st_mtime
            last = self.mounted(image, newest)
            missing = at - (last or started)
            self.assertLess(missing, 61, "%s: the newest is of %.1f s after the start" % (image, last - started))
            worst = max(worst, missing)
            full += last > 0
        print("daemon: %d cuts, %d with history, at most %.1f s before the cut" % (len(images), full, worst))
        self.assertGreater(full, 5)


def skip(why):
    print(why)
    sys.exit(77)


def main():
    if os.geteuid() != 0:
        skip("needs root: loop devices and mounts")
    for tool in ("mkfs.ext4", "e2fsck", "mount", "unshare"):
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip("no %s" % tool)
    if not os.path.exists("/dev/fuse"):
        skip("no FUSE")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if INNER not in os.environ:
        if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            skip("no mount namespace can be had")
        os.environ[INNER] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as d:
        image = os.path.join(d, "probe.img")
        with open(image, "wb") as f:
            f.truncate(4 << 20)
        run("mkfs.ext4", "-q", "-F", image)
        r = subprocess.run(["mount", "-o", "loop", image, d], stderr=subprocess.PIPE)
        if r.returncode != 0:
            skip("no loop device can be had: %s" % r.stderr.decode(errors="replace").strip())
        run("umount", d)
    unittest.main(verbosity=1)


if __name__ == "__main__":
    main()
