# SPDX-License-Identifier: GPL-2.0-or-later
"""C23: a long history (CSTATED_ROWS rows of a CPU and second, 2.7 million) is asked for whole: what daemon and client
hold in memory does not grow with the window."""

import os
import subprocess
import unittest

from daemonbed import DaemonTest, main, status_field
from machinebed import sanitized

CSTATECTL = os.environ["CSTATECTL"]
WEEK = os.environ["WEEK"]
ROWS = int(os.environ.get("CSTATED_ROWS", "2700000"))
MIB = 1 << 20
RSS_MAX = 64 * MIB
# from an hour to the whole: pieces of replies, the allocator's slack, a wider machine's blocks
GROWTH_MAX = (4 if ROWS < 10_000_000 else 16) * MIB
HOUR = 3600 * 1000


def peak(pid):
    return int(status_field(pid, "VmHWM").split()[0]) * 1024


def forget_peak(pid):
    with open("/proc/%d/clear_refs" % pid, "w") as f:
        f.write("5")


@unittest.skipIf(sanitized(), "a sanitizer's shadow is no memory of ours")
class Bounded(DaemonTest):
    @classmethod
    def setUpClass(cls):
        # room for some GB where that is asked for: not in memory
        cls.days = 1 if ROWS < 10_000_000 else 3
        cls.cpus = -(-ROWS // (86400 * cls.days))

    def setUp(self):
        super().setUp()
        out = subprocess.check_output([WEEK, self.db, str(self.cpus), str(self.days)], text=True)
        self.begin, self.end = map(int, out.split())

    def points(self):
        """So many that a reply is as long as one may be, or nearly."""
        return min(10000, 300_000 // self.cpus)

    def questions(self, start):
        window = "start=%d&end=%d" % (start, self.end)
        middle = (start + self.end) // 2
        return [
            "/api/v1/query?metric=busy,c6,irq&scope=system&points=1000&" + window,
            "/api/v1/query?metric=busy&points=%d&agg=mean,min,max,stddev&%s" % (self.points(), window),
            "/api/v1/query?metric=busy&points=1000&format=columns&" + window,
            "/api/v1/query?metric=busy&points=1000&format=csv&" + window,
            "/api/v1/query?metric=idle_time&scope=system&step=60s&" + window,
            "/api/v1/query?metric=c6&scope=package&step=1h&" + window,
            "/api/v1/summary?" + window,
            "/api/v1/compare?a=%d..%d&b=%d..%d" % (start, middle, middle, self.end),
        ]

    def ask(self, pid, start):
        """The highest peak of any question; and the bytes of the longest reply."""
        highest, longest = 0, 0
        for question in self.questions(start):
            forget_peak(pid)
            status, _, body = self.get(question, timeout=300)
            self.assertEqual(status, 200, (question, body[:300]))
            highest, longest = max(highest, peak(pid)), max(longest, len(body))
        return highest, longest

    def test_daemon(self):
        p = self.start("--interval", "1s")
        self.ask(p.pid, self.end - HOUR)  # what is allocated once
        hour, _ = self.ask(p.pid, self.end - HOUR)
        whole, longest = self.ask(p.pid, self.begin)
        print("an hour: %.1f MiB, whole: %.1f MiB, longest reply %.1f MB" % (hour / MIB, whole / MIB, longest / 1e6))
        self.assertGreater(longest, 20e6)
        self.assertLess(whole, RSS_MAX)
        self.assertLess(whole, hour + GROWTH_MAX)
        self.assertEqual(self.stop(p), 0)

    def run_client(self, *args):
        """Its output goes by unread but for its length; the peak of its memory. time(1) stands between: the peak that
        wait4(2) tells of a child of ours begins with what this process holds."""
        told = os.path.join(self.dir, "peak")
        p = subprocess.Popen(["/usr/bin/time", "-f", "%M", "-o", told, CSTATECTL, "--db", self.db, *args], stdout=subprocess.PIPE)
        n = 0
        while piece := p.stdout.read(MIB):
            n += len(piece)
        p.stdout.close()
        self.assertEqual(p.wait(), 0, args)
        with open(told, encoding="ascii") as f:
            return int(f.read()) * 1024, n

    def verbs(self, start):
        window = ["--start", str(start), "--end", str(self.end)]
        middle = (start + self.end) // 2
        return [
            ["query", "--metric", "busy", "--points", str(self.points()), *window],
            ["export", "--format", "openmetrics", "--step", "60s", *window],
            ["show", "%d..%d" % (start, self.end)],
            ["compare", "%d..%d" % (start, middle), "%d..%d" % (middle, self.end)],
            ["sql", "SELECT count(*), sum(mperf) FROM cpu_raw WHERE t > %d" % (start * 1000)],
        ]

    def test_client(self):
        hour = max(self.run_client(*verb)[0] for verb in self.verbs(self.end - HOUR))
        whole, longest = map(max, zip(*[self.run_client(*verb) for verb in self.verbs(self.begin)]))
        print("an hour: %.1f MiB, whole: %.1f MiB, longest output %.1f MB" % (hour / MIB, whole / MIB, longest / 1e6))
        self.assertGreater(longest, 5e6)
        self.assertLess(whole, RSS_MAX)
        self.assertLess(whole, hour + 2 * GROWTH_MAX)


if __name__ == "__main__":
    main()
