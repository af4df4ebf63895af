# SPDX-License-Identifier: GPL-2.0-or-later
"""C20: numbers do not follow the locale, neither in nor out."""

import os
import re
import shutil
import subprocess
import unittest

from daemonbed import DaemonTest, main, until


class Locale(DaemonTest):
    def comma(self):
        """The environment of a locale whose numbers have commas."""
        if not shutil.which("localedef") or not os.path.exists("/usr/share/i18n/locales/de_DE"):
            self.skipTest("no localedef and locale sources (package locales) to make a comma locale with")
        locales = os.path.join(self.dir, "locales")
        os.mkdir(locales)
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(locales, "de_DE.UTF-8")], check=True, stderr=subprocess.DEVNULL)
        comma = subprocess.run(["env", "LC_ALL=de_DE.UTF-8", "LOCPATH=" + locales, "printf", "%.1f", "1,5"], capture_output=True, text=True).stdout
        self.assertEqual(comma, "1,5", "the locale does not work here")
        return {"LC_ALL": "de_DE.UTF-8", "LOCPATH": locales}

    def replies(self, record, env):
        """Everything that is said of one recording, by a daemon and a client in that environment."""
        self.db = os.path.join(self.dir, "replay-%d.db" % len(self.running))
        p = self.spawn("--config", os.devnull, "--db", self.db, "--listen", self.sock, "--replay", record, env=env)
        self.wait_ready(p)
        until(lambda: self.messages().count("ticks read") == len(self.running) - 1, "the end of the recording")
        first, last = (self.json("/api/v1/status")["store"]["tiers"]["raw"][k] for k in ("oldest", "newest"))
        window = "start=%d&end=%d" % (first, last + 1)
        query = "/api/v1/query?%s&metric=busy,irq,idle_time,wakeups&agg=mean,stddev,min,max,sum,count" % window
        said = {path: self.get(path) for path in (
            query, query + "&format=csv", query + "&format=columns", query + "&format=csv&time_format=iso",
            "/api/v1/summary?" + window, "/api/v1/snapshot", "/api/v1/catalogue", "/api/v1/cpu")}
        said = {path: (status, body) for path, (status, _, body) in said.items()}
        for args in (["snapshot"], ["snapshot", "--format=csv"], ["snapshot", "--format=json"],
                     ["query", "--metric", "busy,irq", "--start", str(first), "--end", str(last + 1), "--format", "csv"]):
            done = subprocess.run([os.environ["CSTATECTL"], "--connect", self.sock, *args], capture_output=True,
                                  env={**os.environ, **env}, timeout=60, check=False)
            said[" ".join(args[:2])] = done.returncode, done.stdout + done.stderr
        self.assertEqual(self.stop(p), 0)
        for path, (status, body) in said.items():
            self.assertIn(status, (0, 200), "%s: %r" % (path, body))
            self.assertTrue(body, path)
        return said

    def test_bytes_are_the_same(self):
        """One recording, told in C, with decimal commas, and on the other side of the world."""
        comma = self.comma()
        record = os.path.join(self.dir, "frames")
        p = self.start("--record", record)
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] >= 12, "twelve ticks")
        self.assertEqual(self.stop(p), 0)
        plain = self.replies(record, {"LC_ALL": "C", "TZ": "UTC"})
        self.assertTrue(any(re.search(rb"\d\.\d", body) for _, body in plain.values()))
        for env in ({**comma, "TZ": "UTC"}, {**comma, "TZ": "Pacific/Auckland"}, {"LC_ALL": "C", "TZ": "no such zone"}):
            for what, answer in self.replies(record, env).items():
                self.assertEqual(answer, plain[what], "%s in %s" % (what, env))

    def test_comma_locale(self):
        environment = self.comma()
        conf = os.path.join(self.dir, "c.conf")
        with open(conf, "w") as f:
            f.write("[Sampler]\nInterval=0.25s\n[Events]\nBreakShare=2.5%\n")
        p = self.spawn("--config", conf, "--db", self.db, "--listen", self.sock, env=environment)
        self.wait_ready(p)
        status = self.json("/api/v1/status")
        self.assertEqual(status["interval_ms"], 250)
        until(lambda: self.get("/api/v1/snapshot")[0] == 200, "a snapshot")
        for path in ("/api/v1/status", "/api/v1/snapshot", "/api/v1/query?metric=busy,irq", "/api/v1/cpu"):
            _, _, body = self.get(path)
            self.json(path)
            self.assertIsNone(re.search(rb'":-?\d+,\d+[,}]', body.replace(b" ", b"")), path)
        header, *rows = self.get("/api/v1/query?metric=busy&format=csv")[2].decode().splitlines()
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row.count(","), header.count(","), row)
        printed = subprocess.run([os.environ["CSTATED"], "--config", conf, "--print-config"], capture_output=True, text=True, env={**os.environ, **environment}).stdout
        self.assertIn("Interval=250ms\n", printed)
        self.assertIn("BreakShare=2.50%\n", printed)


if __name__ == "__main__":
    main()
