# SPDX-License-Identifier: GPL-2.0-or-later
"""C20: numbers do not follow the locale, neither in nor out."""

import os
import re
import shutil
import subprocess
import unittest

from daemonbed import DaemonTest, main, until


class Locale(DaemonTest):
    def test_comma_locale(self):
        if not shutil.which("localedef") or not os.path.exists("/usr/share/i18n/locales/de_DE"):
            self.skipTest("no localedef and locale sources (package locales) to make a comma locale with")
        locales = os.path.join(self.dir, "locales")
        os.mkdir(locales)
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(locales, "de_DE.UTF-8")], check=True, stderr=subprocess.DEVNULL)
        environment = {"LC_ALL": "de_DE.UTF-8", "LOCPATH": locales}
        comma = subprocess.run(["env", "LC_ALL=de_DE.UTF-8", "LOCPATH=" + locales, "printf", "%.1f", "1,5"], capture_output=True, text=True).stdout
        self.assertEqual(comma, "1,5", "the locale does not work here")
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
