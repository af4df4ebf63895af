# SPDX-License-Identifier: GPL-2.0-or-later
"""The real daemon's history through kills and a full disk. CSTATED_KILLS=200 for the long version."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from daemonbed import CSTATED, DaemonTest, alive, main, until

CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")
KILLS = int(os.environ.get("CSTATED_KILLS", "20"))
COLUMNS = "t, cpu, dt, irq, irq_loc, stat_busy, stat_idle"


class StoreTest(DaemonTest):
    def sql(self, text, db=None):
        """Rows of a statement, by the client, read-only."""
        out = subprocess.run([CSTATECTL, "--db", db or self.db, "sql", "--format", "json", text], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        return [tuple(json.loads(line).values()) for line in out.stdout.splitlines()]

    def store(self):
        return self.json("/api/v1/status")["store"]


class Kills(StoreTest):
    def replayed(self, record, name):
        """The rows that the sampler's own record makes, through a database of its own."""
        db, sock = os.path.join(self.dir, name + ".db"), os.path.join(self.dir, name + ".sock")
        p = self.spawn("--config", os.devnull, "--db", db, "--listen", sock, "--replay", record)
        until(lambda: p.poll() is not None or "ticks read" in self.messages().rsplit("\n", 2)[-2], "the replay")
        self.assertIsNone(p.poll(), self.messages())
        self.assertEqual(self.stop(p), 0)
        if self.sql("SELECT count(*) FROM chunk", db) == [(0,)]:
            return []  # killed before the second tick
        return self.sql("SELECT %s FROM cpu_raw" % COLUMNS, db)

    def test_kills(self):
        """Every tick of the record up to the kill is in the history, value for value, none twice; save one in the socket."""
        rng = random.Random(7)
        expected = []
        for i in range(KILLS):
            record = os.path.join(self.dir, "record%d" % i)
            p = self.start("--record", record, interval="250ms")
            sampler = self.sampler(p)
            time.sleep(rng.uniform(0.1, 1.8))
            p.kill()
            p.wait()
            until(lambda: not alive(sampler), "the sampler to end", 2)
            expected.append(self.replayed(record, "replay%d" % i))
        p = self.start()  # takes over what the last one left, when it knows the machine again
        until(lambda: self.store()["ticks"] > 0, "a tick")
        self.stop(p)
        self.check_database()
        have = self.sql("SELECT %s FROM cpu_raw" % COLUMNS)
        self.assertEqual(len(set(have)), len(have), "a row stands twice")
        times = sorted({row[0] for row in have})
        rows = set(have)
        lost = 0
        for i, run in enumerate(expected):
            ticks = sorted({row[0] for row in run})
            missing = [t for t in ticks if t not in set(times)]
            lost += len(missing)
            # the last frame may have been in the socket, a few where the kill fell into the start
            allowed = 1 if len(missing) < len(ticks) else 3
            self.assertLessEqual(len(missing), allowed, "run %d lost %r of %d ticks" % (i, missing, len(ticks)))
            self.assertEqual(missing, ticks[len(ticks) - len(missing):])
            for row in run:
                if row[0] not in missing:
                    self.assertIn(row, rows)
        self.assertGreater(len(times), KILLS)
        print("%d kills, %d ticks, %d lost in the socket" % (KILLS, len(times), lost))


class FullDisk(StoreTest):
    """On a tmpfs of 2 MB in a mount namespace of its own: this file runs again within it."""

    INNER = "CSTATED_TEST_TMPFS"

    def test_full_disk(self):
        if os.environ.get(self.INNER):
            self.skipTest("the outer half")
        directory = os.path.join(self.dir, "small")
        os.mkdir(directory)
        how = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if subprocess.run(how + ["true"]).returncode != 0:
            self.skipTest("no mount namespace can be had")
        script = 'mount -t tmpfs -o size=2m tmpfs "$1" && shift && exec "$@"'
        r = subprocess.run(how + ["sh", "-c", script, "sh", directory, sys.executable, __file__, "-v", "Inner"],
                           env={**os.environ, self.INNER: directory}, timeout=200)
        self.assertEqual(r.returncode, 0)


class Inner(StoreTest):
    def setUp(self):
        super().setUp()
        self.small = os.environ.get(FullDisk.INNER)
        if not self.small:
            self.skipTest("runs within the other")
        self.db = os.path.join(self.small, "idle.db")
        self.filler = os.path.join(self.small, "filler")

    def fill(self):
        with open(self.filler, "ab", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass
            try:
                while True:
                    f.write(b"x")
            except OSError:
                pass

    def test_full_and_well_again(self):
        p = self.start(env={"RUNTIME_DIRECTORY": self.dir})
        until(lambda: self.store()["commits"] > 0, "the first commit", 70)
        self.fill()
        first = self.store()["ticks"]
        until(lambda: self.json("/api/v1/status")["health"] == "degraded", "degraded", 70)
        problems = self.json("/api/v1/status")["problems"]
        self.assertTrue(any("full" in json.dumps(problem) for problem in problems), problems)
        until(lambda: self.store()["ring_ticks"] > 0, "the ring", 70)
        self.assertGreater(self.store()["ticks"], first)
        lines = [l for l in self.messages().splitlines() if "full" in l]
        self.assertEqual(len(lines), 1, lines)
        os.unlink(self.filler)
        until(lambda: self.json("/api/v1/status")["health"] == "ok", "recovery", 70)
        self.assertEqual(self.store()["ticks_lost"], 0)
        self.assertEqual(self.stop(p), 0)
        self.check_database()
        # every tick since the start, each once, no hole but the one there was before
        times = [row[0] for row in self.sql("SELECT DISTINCT t FROM cpu_raw ORDER BY t")]
        self.assertGreater(len(times), 600)
        self.assertLess(max(b - a for a, b in zip(times, times[1:])), 1500000)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[2] == "Inner":
        result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Inner))
        sys.exit(0 if result.wasSuccessful() and not result.skipped else 1)
    main()
