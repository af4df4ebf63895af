# SPDX-License-Identifier: GPL-2.0-or-later
"""The real daemon while its wall clock is set by -60 s and +3600 s, and while the machine is suspended (clock-shim.c):
no tick is lost or there twice, their order is that of their numbers, and no tick lasts longer than it did."""

import os
import sqlite3
import struct
import time
import unittest

from daemonbed import DaemonTest, main, until

SHIM = os.environ.get("CLOCK_SHIM", "clock-shim.so")
STEPS = [("a minute back", -60, 0), ("an hour forth", 3600, 0), ("suspended for half an hour", 1800, 1800)]
TICKS = 15  # between two steps
NS = 10**9


class Clocks(DaemonTest):
    def set_clocks(self, real, boot):
        with open(self.clocks, "r+b") as f:
            f.write(struct.pack("=qq", int(real * NS), int(boot * NS)))

    def ticks(self):
        return self.json("/api/v1/status")["store"]["ticks"]

    def test_steps(self):
        self.clocks = os.path.join(self.dir, "clocks")
        with open(self.clocks, "wb") as f:
            f.write(bytes(16))
        # a second in the middle of a minute, so that the minute's end is none of the steps
        while not 5 <= time.time() % 60 <= 45:
            time.sleep(0.2)
        p = self.start(env={"LD_PRELOAD": SHIM, "CSTATED_TEST_CLOCKS": self.clocks})
        real = boot = 0
        for _, d_real, d_boot in STEPS:
            n = self.ticks()
            until(lambda: self.ticks() >= n + TICKS, "ticks")
            real, boot = real + d_real, boot + d_boot
            self.set_clocks(real, boot)
        n = self.ticks()
        until(lambda: self.ticks() >= n + TICKS, "ticks")
        missed = self.json("/api/v1/status")["self"]["missed_ticks"]
        n = self.ticks()
        self.assertEqual(self.stop(p), 0)
        self.check_database()
        db = sqlite3.connect(self.db)
        chunks = db.execute("SELECT seq, t0, t1, n, epoch FROM chunk ORDER BY seq").fetchall()
        # numbers without a hole, however the clock was set
        self.assertEqual([c[0] for c in chunks], [1 + sum(c[3] for c in chunks[:i]) for i in range(len(chunks))])
        total = sum(c[3] for c in chunks)
        self.assertGreaterEqual(total, n)
        self.assertLessEqual(total, n + 3)  # those between the question and the end
        # each step ends a chunk (at least those four are there), and time goes on by the step
        self.assertGreaterEqual(len(chunks), len(STEPS) + 1)
        jumps = [round(1e-6 * (b[1] - a[2])) for a, b in zip(chunks, chunks[1:])]
        self.assertEqual([j for j in jumps if j], [d_real for _, d_real, _ in STEPS])
        self.assertEqual([c[0] for c in db.execute("SELECT count(*) FROM event WHERE kind = 'suspend'")], [1])
        epochs = [c[4] for c in chunks]
        self.assertEqual(len(set(epochs)), 2, "a suspend, and nothing else, begins an epoch")
        # what the ticks cover, by the clock that was not set: each its interval, none the step
        n_rows, dt = db.execute("SELECT sum(n), sum(dt) FROM sys_1m").fetchone()
        self.assertEqual(n_rows, total)
        self.assertAlmostEqual(1e-9 * dt, 0.1 * (total + missed), delta=0.5)
        db.close()
        print("%d ticks in %d chunks, %d missed, dt %.2f s, jumps %r" % (total, len(chunks), missed, 1e-9 * dt, jumps))


if __name__ == "__main__":
    if not os.path.exists(SHIM):
        raise unittest.SkipTest(SHIM)
    main()
