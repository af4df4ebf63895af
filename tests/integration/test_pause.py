# SPDX-License-Identifier: GPL-2.0-or-later
"""C02: a pause in which an energy counter may have gone round more than once is a gap, not a number.

The fake machine counts in 2^-22 J: 32 bits go round after 1024 J, which is 10 s at its 100 W, but about a second at the
1000 W that a package is believed to draw at most. So 3 s of SIGSTOP stand for the hours of a real machine.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from daemonbed import CSTATED, UnixConnection, children, main, until

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
SKIP = 77
PAUSE = 3.0
WATTS = 100


def get(sock, path):
    c = UnixConnection(sock)
    try:
        c.request("GET", path)
        r = c.getresponse()
        return json.loads(r.read()) if r.status == 200 else None
    except OSError:
        return None
    finally:
        c.close()


def inside(folder):
    """Prints every interval's (milliseconds, watts, reason) around a pause of the sampler."""
    sock = os.path.join(folder, "socket")
    daemon = subprocess.Popen([CSTATED, "--config", os.devnull, "--db", os.path.join(folder, "db"), "--listen", sock, "--interval", "200ms",
                               "--sources", "-idletrace,-perf,-powercap"], stdin=subprocess.DEVNULL)
    seen = {}

    def look():
        s = get(sock, "/api/v1/snapshot")
        if s:
            p = s["packages"][0]
            seen[s["end"]] = (s["interval_ms"], p["pkg_watts"], p.get("reasons", {}).get("pkg_watts"))
        return len(seen)

    try:
        until(lambda: look() >= 5, "five intervals")
        sampler = children(daemon.pid)[0]
        os.kill(sampler, signal.SIGSTOP)
        time.sleep(PAUSE)
        os.kill(sampler, signal.SIGCONT)
        n = len(seen)
        until(lambda: look() >= n + 6, "intervals after the pause")
    finally:
        daemon.terminate()
        daemon.wait(10)
    print(json.dumps([seen[k] for k in sorted(seen)]))
    return 0


class Pause(unittest.TestCase):
    def test_pause_is_a_gap(self):
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run([RUN, "skx-2s", "--set", "esu=22", "--event", "set pkg_watts=%d" % WATTS, "--", sys.executable,
                                os.path.abspath(__file__), "--inside", folder], capture_output=True, text=True, timeout=120, check=False)
        if p.returncode == SKIP:
            self.skipTest(p.stderr.strip())
        self.assertEqual(p.returncode, 0, p.stderr)
        intervals = json.loads(p.stdout.splitlines()[-1])
        long = [i for i in intervals if i[0] > PAUSE * 900]
        self.assertEqual([i[1:] for i in long], [[None, "gap"]], intervals)
        values = [i[1] for i in intervals if i not in long and i[2] != "first"]
        self.assertGreaterEqual(len(values), 8, intervals)
        for watts in values:
            self.assertAlmostEqual(watts, WATTS, delta=WATTS * 0.02)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2]))
    main()
