# SPDX-License-Identifier: GPL-2.0-or-later
"""Command line, configuration, reload."""

import os
import signal
import subprocess

from daemonbed import CSTATED, DaemonTest, main, until


class Configuration(DaemonTest):
    def write(self, text, name="c.conf"):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def run_it(self, *args):
        return subprocess.run([CSTATED, *args], capture_output=True, text=True, timeout=15)

    def test_usage(self):
        for args in (["--nonsense"], ["argument"], ["--interval", "soon"], ["--interval", "0.001"], ["--interval", "61s"], ["--wake-policy", "never"],
                     ["--listen", "nonsense"], ["--sources", "nosuch"], ["--record", "a", "--replay", "b"], ["--interval"]):
            r = self.run_it(*args)
            self.assertEqual(r.returncode, 2, args)
            self.assertTrue(r.stderr)
            self.assertEqual(r.stdout, "")

    def test_help(self):
        r = self.run_it("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertLessEqual(max(len(l) for l in r.stdout.splitlines()), 80)
        for option in ("config", "db", "listen", "interval", "wake-policy", "sources", "record", "replay", "print-config", "check-config", "version", "help"):
            self.assertIn("--" + option, r.stdout)
        self.assertRegex(self.run_it("--version").stdout, r"^cstated \d+\.\d+")

    def test_invalid_value(self):
        path = self.write("# comment\n[Sampler]\nInterval=10ms\n")
        for mode in ([], ["--check-config"], ["--print-config"]):
            r = self.run_it("--config", path, *mode)
            self.assertEqual(r.returncode, 78)
            self.assertIn("%s:3: [Sampler] Interval=" % path, r.stderr)

    def test_unknown_key_warns(self):
        path = self.write("[Store]\nMaxSise=1G\n")
        r = self.run_it("--config", path, "--check-config")
        self.assertEqual(r.returncode, 0)
        self.assertIn("%s:2: unknown key MaxSise=" % path, r.stderr)

    def test_missing_file(self):
        self.assertEqual(self.run_it("--config", os.path.join(self.dir, "no"), "--check-config").returncode, 78)

    def test_print_is_what_is_read(self):
        path = self.write("[Sampler]\nInterval=1.5s\n[Store]\nMaxSize=3G\n")
        self.write("[Http]\nListen=/tmp/a\nListen=/tmp/b\n", "c.conf.d/10.conf")
        self.write("[Sampler]\nInterval=2s\n", "c.conf.d/20.conf")
        self.write("[Sampler]\nInterval=3s\n", "c.conf.d/30.not-a-conf")
        first = self.run_it("--config", path, "--interval", "5s", "--print-config")
        self.assertEqual(first.returncode, 0)
        self.assertIn("Interval=5s\n", first.stdout)
        self.assertIn("Listen=/tmp/a\nListen=/tmp/b\n", first.stdout)
        again = self.write(first.stdout, "again.conf")
        self.assertEqual(self.run_it("--config", again, "--print-config").stdout, first.stdout)
        self.assertIn("Interval=2s\n", self.run_it("--config", path, "--print-config").stdout)

    def test_no_tcp_under_systemd(self):
        """The service has no network: a TCP address there is an error that names the way."""
        path = self.write("[Http]\nListen=127.0.0.1:9290\n")
        r = subprocess.run(["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$0" --config "$1" --db "$2"', CSTATED, path, self.db], capture_output=True, text=True, timeout=15)
        self.assertEqual(r.returncode, 78)
        self.assertIn("cstated.socket", r.stderr)
        self.assertIn("ListenStream=127.0.0.1:9290", r.stderr)

    def test_reload(self):
        path = self.write("[Http]\nIdleTimeout=10s\n")
        p = self.spawn("--config", path, "--db", self.db, "--listen", self.sock, "--interval", "100ms")
        self.wait_ready(p)
        self.write("[Http]\nIdleTimeout=20s\n[Store]\nMaxSize=1G\n[Sampler]\nWakePolicy=always\n[Events]\nIntervals=5\n")
        p.send_signal(signal.SIGHUP)
        until(lambda: "reload: [Events] Intervals= applied" in self.messages(), "the reload")
        self.assertIn("reload: [Http] IdleTimeout= applied", self.messages())
        self.assertIn("reload: [Store] MaxSize= applied", self.messages())
        self.assertIn("reload: [Sampler] WakePolicy= changed, takes effect when cstated is restarted", self.messages())
        self.assertNotIn("Interval= ", self.messages())  # the option still overrides
        # a broken file leaves everything as it is
        self.write("[Http]\nIdleTimeout=soon\n")
        p.send_signal(signal.SIGHUP)
        until(lambda: "the configuration in force stays" in self.messages(), "the refusal")
        self.assertTrue(self.json("/api/v1/status")["version"])
        self.assertEqual(self.stop(p), 0)


if __name__ == "__main__":
    main()
