# SPDX-License-Identifier: GPL-2.0-or-later
"""How the two processes begin and end."""

import json
import os
import signal
import sqlite3
import time

from daemonbed import DaemonTest, alive, main, until


class Life(DaemonTest):
    def test_stops_in_time(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            p = self.start()
            sampler = self.sampler(p)
            began = time.monotonic()
            self.assertEqual(self.stop(p, number), 0, self.messages())
            self.assertLess(time.monotonic() - began, 2)
            self.assertFalse(alive(sampler))
            self.assertFalse(os.path.exists(self.sock))
            self.check_database()

    def rows(self):
        """Raw rows of one CPU: {time: count of interrupts}."""
        rows = self.json("/api/v1/query?metric=irq&cpu=0&agg=sum&format=rows&start=-10m")["rows"]
        return {r["time"]: r["sum"] for r in rows if r["sum"] is not None}

    def some_rows(self):
        return until(lambda: len(rows := self.rows()) >= 10 and rows, "ten rows")

    def test_server_killed(self):
        """kill -9 in the open minute: what was served before is served after, to the row and its value."""
        p = self.start()
        sampler = self.sampler(p)
        before = self.some_rows()
        p.kill()
        p.wait()
        until(lambda: not alive(sampler), "the sampler to end", 2)
        self.check_database()
        q = self.start()  # the socket it left behind is replaced
        # adopted from the open minute, or, where the wall minute ended in between, from the chunk that was written
        until(lambda: set(before) <= set(self.rows()), "the rows from before")
        after = self.rows()
        self.assertEqual({t: after.get(t) for t in before}, before)
        self.assertEqual(self.stop(q), 0)
        self.check_database()

    def raw_chunks(self):
        c = sqlite3.connect("file:%s?mode=ro" % self.db, uri=True)
        try:
            return c.execute("SELECT count(*) FROM chunk").fetchone()[0]
        finally:
            c.close()

    def test_sampler_killed(self):
        p = self.start()
        before = self.some_rows()
        os.kill(self.sampler(p), signal.SIGKILL)
        self.assertNotEqual(p.wait(2), 0)
        self.assertIn("the sampler ended (killed by signal 9)", self.messages())
        self.check_database()
        self.assertGreater(self.raw_chunks(), 0)  # the open minute was closed
        q = self.start()
        after = self.rows()
        self.assertEqual({t: after.get(t) for t in before}, before)
        self.assertEqual(self.stop(q), 0)

    def test_sampler_hangs_at_stop(self):
        p = self.start()
        sampler = self.sampler(p)
        os.kill(sampler, signal.SIGSTOP)
        began = time.monotonic()
        self.assertEqual(self.stop(p), 0)
        self.assertLess(time.monotonic() - began, 2)
        until(lambda: not alive(sampler), "the stopped sampler to be killed", 1)
        self.check_database()

    def test_sampler_outlives_the_terminal(self):
        p = self.start()
        sampler = self.sampler(p)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(sampler, number)
        seen = until(lambda: self.json("/api/v1/status")["last_sample"], "a sample")
        until(lambda: self.json("/api/v1/status")["last_sample"] > seen, "another sample")
        self.assertTrue(alive(sampler))

    def test_sigpipe(self):
        p = self.start()
        p.send_signal(signal.SIGPIPE)
        self.assertTrue(self.json("/api/v1/status")["version"])
        self.assertIsNone(p.poll())

    def test_record_and_replay(self):
        record = os.path.join(self.dir, "frames")
        p = self.start("--record", record)
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] >= 5, "five ticks")
        self.assertEqual(self.stop(p), 0)
        recorded = self.newest()
        for name in os.listdir(self.dir):
            if name.startswith("idle.db"):
                os.unlink(os.path.join(self.dir, name))
        p = self.start("--replay", record)
        until(lambda: "ticks read" in self.messages(), "the end of the file")
        status = self.json("/api/v1/status")
        self.assertGreaterEqual(status["store"]["ticks"], 5)
        self.assertEqual(self.children_of(p), [])
        self.assertEqual(self.stop(p), 0)
        if recorded:
            self.assertEqual(self.newest(), recorded)

    def children_of(self, p):
        with open("/proc/%d/task/%d/children" % (p.pid, p.pid)) as f:
            return f.read().split()

    def newest(self):
        c = sqlite3.connect("file:%s?mode=ro" % self.db, uri=True)
        try:
            tables = [r[0] for r in c.execute("SELECT name FROM sqlite_schema WHERE name IN ('chunk', 'tick')")]
            return [c.execute("SELECT max(t1) FROM %s" % t).fetchone()[0] for t in tables]
        finally:
            c.close()

    def test_damaged_recording(self):
        record = os.path.join(self.dir, "frames")
        with open(record, "wb") as f:
            f.write(b"CSTF" + os.urandom(400))
        said = self.refuses("--config", os.devnull, "--db", self.db, "--listen", self.sock, "--replay", record)
        self.assertIn("damaged frame", said)

    def test_one_writer(self):
        p = self.start()
        said = self.refuses("--config", os.devnull, "--db", self.db, "--listen", os.path.join(self.dir, "other"))
        self.assertIn("another cstated keeps it", said)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "other")))
        self.assertEqual(self.stop(p), 0)
        self.check_database()

    def test_newer_database(self):
        p = self.start()
        self.stop(p)
        c = sqlite3.connect(self.db)
        c.execute("PRAGMA user_version = 9999")
        c.commit()
        c.close()
        with open(self.db, "rb") as f:
            before = f.read()
        said = self.refuses("--config", os.devnull, "--db", self.db, "--listen", self.sock, status=78)
        self.assertIn("newer version", said)
        with open(self.db, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_foreign_database(self):
        c = sqlite3.connect(self.db)
        c.execute("CREATE TABLE mine(x)")
        c.commit()
        c.close()
        said = self.refuses("--config", os.devnull, "--db", self.db, "--listen", self.sock, status=78)
        self.assertIn("no database of cstated", said)


if __name__ == "__main__":
    main()
