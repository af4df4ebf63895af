# SPDX-License-Identifier: GPL-2.0-or-later
"""The real daemon, at ten times the usual rate, on a history that keeps it busy: a client that reads a big window
slowly, a million rows that have expired. Samples keep their time, the WAL stays small."""

import json
import os
import socket
import sqlite3
import subprocess
import time

from daemonbed import DaemonTest, main, until

STORE_WRITER = os.environ.get("STORE_WRITER", "store-writer")
CPUS = 64
MIB = 1 << 20


class History(DaemonTest):
    def fill(self, ticks):
        run = os.path.join(self.dir, "run")
        os.mkdir(run)
        subprocess.run([STORE_WRITER, "fill", self.db, run, str(CPUS), str(ticks)], check=True, timeout=200)

    def sql(self, text):
        c = sqlite3.connect(self.db, timeout=10)
        try:
            with c:
                return c.execute(text).fetchall()
        finally:
            c.close()

    def status(self):
        return self.json("/api/v1/status")

    def check_ticks(self, before, after, seconds):
        """What it has of ten samples a second. A busy machine may hold up the sampler; the server must not."""
        ticks = after["store"]["ticks"] - before["store"]["ticks"]
        missed = after["self"]["missed_ticks"] - before["self"]["missed_ticks"]
        self.assertEqual(after["self"]["dropped_frames"], 0)
        self.assertEqual(after["store"]["ticks_lost"], 0)
        self.assertEqual(after["health"], "ok", after["problems"])
        self.assertGreaterEqual(ticks + missed, int(10 * seconds) - 2)
        self.assertLessEqual(missed, ticks // 20, "%d of %d ticks missed" % (missed, ticks))
        return ticks, missed


class SlowReader(History):
    def connect(self, path):
        s = socket.socket(socket.AF_UNIX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(15)
        s.connect(self.sock)
        s.sendall(("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path).encode())
        return s

    def checkpoint(self):
        """(blocked, pages in the WAL, pages moved): blocked while anybody reads."""
        return self.sql("PRAGMA wal_checkpoint(TRUNCATE)")[0]

    def test_slow_reader(self):
        self.fill(3600)
        p = self.start()
        until(lambda: self.status()["store"]["ticks"] > 5, "some ticks")
        before, began = self.status(), time.monotonic()
        s = self.connect("/api/v1/query?metric=irq&scope=cpu&start=-58m&step=1s&format=csv")
        got, end, commits, checkpoints, most = b"", time.monotonic() + 8, 0, 0, 0
        while time.monotonic() < end:
            got += s.recv(2048)  # a few KB a second of some 15 MB
            # another program writes meanwhile, each time a commit of the daemon's
            body = json.dumps({"name": "run %d" % commits, "start": commits + 1, "end": commits + 2})
            status, _, said = self.get("/api/v1/labels", method="POST", body=body,
                                       headers={"Content-Type": "application/json"})
            self.assertIn(status, (200, 201), said)
            commits += 1
            most = max(most, self.status()["store"]["wal_bytes"])
            # the reply is in full swing, and yet nobody holds a read transaction
            if commits % 20 == 0:
                self.assertEqual(self.checkpoint()[0], 0, "a read transaction is open while the client stalls")
                checkpoints += 1
            time.sleep(0.1)
        self.assertLess(len(got), MIB)
        ticks, missed = self.check_ticks(before, self.status(), time.monotonic() - began)
        while True:
            piece = s.recv(MIB)
            if not piece:
                break
            got += piece
        s.close()
        self.assertLess(most, 12 * MIB)
        self.assertGreater(checkpoints, 0)
        head, _, body = got.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200"), head)
        self.assertIn(b"chunked", head.lower())
        self.assertTrue(body.endswith(b"0\r\n\r\n"), body[-100:])
        # every second of every CPU of the old machine
        lines = b"".join(chunks(body)).splitlines()
        self.assertGreaterEqual(len(lines), 3400 * CPUS)
        self.assertEqual(self.stop(p), 0)
        self.check_database()
        print("slow reader: %d lines, %d MB, %d commits and %d checkpoints meanwhile, WAL at most %d KB, %d ticks,"
              " %d missed" % (len(lines), len(got) >> 20, commits, checkpoints, most >> 10, ticks, missed))


def chunks(body):
    """The data of a chunked body."""
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        n = int(body[at:end], 16)
        if n == 0:
            return
        yield body[end + 2:end + 2 + n]
        at = end + 2 + n + 2


class Backlog(History):
    ROWS = 1000000

    def age(self):
        """Rows as wide as real ones, of minutes of long ago and their hours; (first, end) in minutes."""
        hours = self.ROWS // CPUS // 60 + 1
        oldest = int(time.time()) // 3600 - 40 * 24 - hours
        c = sqlite3.connect(self.db, isolation_level=None)
        c.execute("PRAGMA synchronous=OFF")
        c.execute("BEGIN")
        for scope in ("cpu", "pkg", "sys"):
            names = [r[1] for r in c.execute("PRAGMA table_info(%s_1m)" % scope)]
            names.remove("id")
            names = ", ".join('"%s"' % n for n in names)
            model = c.execute("SELECT min(id) / 8192 + 1 FROM %s_1m" % scope).fetchone()[0]
            c.execute("CREATE TEMP TABLE model AS SELECT id %% 8192 AS key, %s FROM %s_1m WHERE id / 8192 = %d"
                      % (names, scope, model))
            for tier, first, n in (("1m", oldest * 60, hours * 60), ("1h", oldest, hours)):
                c.execute("WITH RECURSIVE span(t) AS (SELECT %d UNION ALL SELECT t + 1 FROM span WHERE t < %d)"
                          " INSERT INTO %s_%s (id, %s) SELECT t * 8192 + key, %s"
                          " FROM span CROSS JOIN model ORDER BY t, key"
                          % (first, first + n - 1, scope, tier, names, names))
            c.execute("DROP TABLE model")
        c.execute("COMMIT")
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        c.close()
        return oldest * 60, (oldest + hours) * 60

    def test_a_million_rows(self):
        self.fill(180)
        _, end = self.age()
        rows = self.sql("SELECT count(*) FROM cpu_1m WHERE id < %d" % (end * 8192))[0][0]
        self.assertGreaterEqual(rows, self.ROWS - CPUS)
        size = os.stat(self.db).st_size
        p = self.start()
        until(lambda: self.status()["store"]["ticks"] > 0, "a tick")
        before, began = self.status(), time.monotonic()
        slowest = most = 0

        def drained():
            nonlocal slowest, most
            asked = time.monotonic()
            most = max(most, self.status()["store"]["wal_bytes"])
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.1)
            return self.sql("SELECT min(id) / 8192 FROM cpu_1m")[0][0] >= end

        until(drained, "a million rows to go", 200)
        took = time.monotonic() - began
        ticks, missed = self.check_ticks(before, self.status(), took)
        self.assertEqual(self.sql("SELECT count(*) FROM pkg_1m WHERE id < %d" % (end * 8192))[0][0], 0)
        self.assertEqual(self.sql("SELECT count(*) FROM sys_1m WHERE id < %d" % (end * 8192))[0][0], 0)
        self.assertLess(most, 24 * MIB)
        self.assertLess(slowest, 2)
        self.assertEqual(self.stop(p), 0)
        self.check_database()
        print("backlog: %d rows of %d MB in %.1f s, %d ticks, %d missed, WAL at most %d KB, slowest status %.0f ms"
              % (rows, size >> 20, took, ticks, missed, most >> 10, slowest * 1000))


if __name__ == "__main__":
    main()
