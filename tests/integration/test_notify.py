# SPDX-License-Identifier: GPL-2.0-or-later
"""What systemd is told, with a made-up $NOTIFY_SOCKET: the watchdog follows frames, not loop turns."""

import os
import signal
import socket
import sqlite3
import time

from daemonbed import DaemonTest, NotifySocket, alive, children, main, until

HERE = os.path.dirname(os.path.abspath(__file__))


class Notify(DaemonTest):
    def begin(self, *args, abstract=False, interval="100ms", **env):
        self.notify = NotifySocket(self.dir, abstract)
        self.addCleanup(self.notify.socket.close)
        env["NOTIFY_SOCKET"] = self.notify.address
        return self.spawn("--config", os.devnull, "--db", self.db, "--listen", self.sock, "--interval", interval, *args, env=env)

    def until_told(self, condition, what):
        def told():
            self.notify.take(0.05)
            return condition()

        until(told, what)

    def begin_again(self):
        self.notify.socket.close()
        os.unlink(self.notify.address)
        return self.begin()

    def test_ready_with_the_first_sample(self):
        for abstract in (False, True):
            with self.subTest(abstract=abstract):
                p = self.begin(abstract=abstract)
                self.notify.wait("READY=1")
                # listeners are bound by then, and there is a sample's worth of state
                self.assertTrue(self.json("/api/v1/status")["cpus"])
                self.notify.wait("STATUS=")
                self.assertEqual(self.notify.count("WATCHDOG"), 0)
                self.assertEqual(self.stop(p), 0)
                self.notify.take()
                self.assertIn("STOPPING=1", self.notify.lines)
                self.assertLess(self.notify.lines.index("READY=1"), self.notify.lines.index("STOPPING=1"))
                if not abstract:
                    os.unlink(self.notify.address)
                self.notify.socket.close()

    def test_never_ready_where_a_listener_fails(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.sock)
            s.listen()
            p = self.begin()
            self.assertEqual(p.wait(15), 1)
        self.notify.take()
        self.assertNotIn("READY=1", self.notify.lines)

    def test_status_is_a_sentence(self):
        p = self.begin()
        self.notify.wait("READY=1")
        self.until_told(lambda: any("Sampling" in l for l in self.notify.lines), "the state")
        line = [l for l in self.notify.lines if l.startswith("STATUS=Sampling")][0]
        self.assertRegex(line, r"STATUS=Sampling \d+ CPUs every 100ms; \d+ of \d+ sources give counters")
        # only where it changed
        self.notify.take(0.5)
        said = [l for l in self.notify.lines if l.startswith("STATUS=Sampling")]
        self.assertEqual(len(said), len(set(said)))
        self.stop(p)

    def test_pings_follow_frames(self):
        p = self.begin(WATCHDOG_USEC="30000000")
        self.notify.wait("READY=1")
        self.until_told(lambda: self.notify.count("WATCHDOG") >= 5, "pings")
        # a sampler that hangs: the server's loop turns on, the pings stop
        sampler = children(p.pid)[0]
        os.kill(sampler, signal.SIGSTOP)
        until(lambda: not self.notify.take(0.5), "the last ping")
        for _ in range(5):
            self.assertEqual(self.get("/api/v1/status")[0], 200)
        self.assertFalse(self.notify.take(0.5))
        os.kill(sampler, signal.SIGCONT)
        until(lambda: self.notify.take(0.1), "pings again")
        self.stop(p)

    def test_watchdog_strikes(self):
        """What systemd does then: SIGABRT to the server, which says why and leaves nothing behind."""
        p = self.begin(WATCHDOG_USEC="30000000")
        self.notify.wait("READY=1")
        sampler = children(p.pid)[0]
        os.kill(sampler, signal.SIGSTOP)
        p.send_signal(signal.SIGABRT)
        self.assertEqual(p.wait(15), 1)
        self.assertRegex(self.messages(), r"no sample for \d+ s, the sampler hangs")
        self.assertFalse(alive(sampler))
        self.check_database()

    def test_impatient_watchdog(self):
        """400 ms against an interval of 2 s: pings by timer, until the last frame is too old."""
        p = self.begin(interval="2s", WATCHDOG_USEC="400000")
        self.notify.wait("READY=1")
        os.kill(children(p.pid)[0], signal.SIGSTOP)
        self.notify.take()
        before = self.notify.count("WATCHDOG")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            self.notify.take(0.1)
        self.assertGreaterEqual(self.notify.count("WATCHDOG") - before, 4)
        gaps = [b - a for a, b in zip(self.notify.times["WATCHDOG"], self.notify.times["WATCHDOG"][1:])]
        self.assertLess(min(gaps), 0.4)
        # three intervals without a frame
        until(lambda: not self.notify.take(1.0), "the pings to end", 12)
        os.kill(children(p.pid)[0], signal.SIGCONT)
        self.stop(p)

    def test_garbage(self):
        for value in ("soon", "0", "-1"):
            with self.subTest(value=value):
                p = self.begin(WATCHDOG_USEC=value)
                self.notify.wait("READY=1")
                self.notify.take(0.4)
                self.assertEqual(self.notify.count("WATCHDOG"), 0)
                self.assertIn("WATCHDOG_USEC=%s is not understood" % value, self.messages())
                self.stop(p)
                self.notify.socket.close()
                os.unlink(self.notify.address)

    def test_another_process_watchdog(self):
        p = self.begin(WATCHDOG_USEC="400000", WATCHDOG_PID="1")
        self.notify.wait("READY=1")
        self.notify.take(0.5)
        self.assertEqual(self.notify.count("WATCHDOG"), 0)
        self.stop(p)

    def test_migration_takes_its_time(self):
        c = sqlite3.connect(self.db)
        with open(os.path.join(HERE, "..", "fixtures", "store-v1.sql"), encoding="utf-8") as f:
            c.executescript(f.read())
        c.close()
        p = self.begin()
        self.notify.wait("READY=1")
        extended = [i for i, l in enumerate(self.notify.lines) if l.startswith("EXTEND_TIMEOUT_USEC=")]
        self.assertTrue(extended, self.notify.lines)
        self.assertLess(extended[-1], self.notify.lines.index("READY=1"))
        self.assertGreaterEqual(int(self.notify.lines[extended[0]].split("=")[1]), 10 * 10**6)
        self.assertEqual(self.stop(p), 0)
        # the second time there is nothing to do
        q = self.begin_again()
        self.notify.wait("READY=1")
        self.assertFalse([l for l in self.notify.lines if l.startswith("EXTEND_TIMEOUT_USEC=")])
        self.stop(q)

    def test_reload(self):
        p = self.begin()
        self.notify.wait("READY=1")
        p.send_signal(signal.SIGHUP)
        self.notify.wait("RELOADING=1")
        self.notify.wait("MONOTONIC_USEC=")
        self.until_told(lambda: self.notify.lines.count("READY=1") == 2, "READY=1 after the reload")
        self.assertLess(self.notify.lines.index("RELOADING=1"), len(self.notify.lines) - 1 - self.notify.lines[::-1].index("READY=1"))
        self.stop(p)

    def test_sampler_dies_under_systemd(self):
        p = self.begin()
        self.notify.wait("READY=1")
        os.kill(children(p.pid)[0], signal.SIGKILL)
        self.assertNotIn(p.wait(2), (0, 78))
        self.notify.take()
        self.assertNotIn("STOPPING=1", self.notify.lines)


if __name__ == "__main__":
    main()
