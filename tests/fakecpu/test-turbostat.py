#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's unmodified turbostat, under the shim, prints what the scenario says: rates within 1 %, counts exactly."""

import shutil
import subprocess
import sys
import unittest

import fakecpu

TURBOSTAT = shutil.which("turbostat") or shutil.which("turbostat", path="/usr/sbin")
RATES = {"cpu": ("Busy%", "Bzy_MHz", "CPU%c1"), "core": ("CPU%c3", "CPU%c6", "CPU%c7", "CorWatt", "CoreTmp"),
         "package": ("Pkg%pc2", "Pkg%pc3", "Pkg%pc6", "PkgWatt", "RAMWatt", "PkgTmp")}
STATES = ("POLL", "C1", "C1E", "C2", "C3", "C6")


def sample(interval):
    """(rows of turbostat's last interval, its pid)"""
    child = subprocess.Popen([TURBOSTAT, "-q", "-i", str(interval), "-n", "2"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    out = child.communicate(timeout=100)[0]
    assert child.returncode == 0, out
    lines = [line.split("\t") for line in out.splitlines()]
    last = max(i for i, line in enumerate(lines) if "Busy%" in line)
    return [dict(zip(lines[last], line)) for line in lines[last + 1:]], child.pid


def tolerance(column, value):
    """1 %, or two of the last printed digits. CPU%c1 is turbostat's remainder and has the others' absolute errors."""
    return 1.0 if column == "CPU%c1" else max(0.01 * value, 1 if "MHz" in column else 0.02)


def mismatches(rows, want):
    """{(cpu, column): (shown, expected)} of what is off, and how much was compared."""
    off, compared = {}, 0
    scale = want["Base_MHz", "system", "-"]
    base = round(scale / 100) * 100 / want["TSC_MHz", "system", "-"]
    for row in rows[1:]:
        package = row.get("Package", "0")
        ids = {"cpu": row["CPU"], "core": package + "/" + row["Core"], "package": package + "/" + row.get("Die", "0")}
        for scope, columns in RATES.items():
            for column in columns + (tuple(s + "%" for s in STATES) if scope == "cpu" else ()):
                value = want.get((column, scope, ids[scope]))
                if value is None or row.get(column, "") == "":
                    continue
                value *= base if column == "Bzy_MHz" else 1
                compared += 1
                if abs(float(row[column]) - value) > tolerance(column, value):
                    off[row["CPU"], column] = row[column], value
    return off, compared


def counts_differ(rows, got):
    """Counts are what the machine served between turbostat's last two readings."""
    off, compared = [], 0
    for row in rows[1:]:
        cpu = int(row["CPU"])
        pairs = [("IRQ", ("irq", cpu)), ("SMI", ("msr", cpu, 0x34))]
        pairs += [(s, ("idle", cpu, "state%d" % i, "usage")) for i, s in enumerate(x for x in STATES if x in row)]
        for column, key in pairs:
            if column not in row:
                continue
            compared += 1
            served = got[key].last - got[key].prev
            if int(row[column]) != served:
                off.append((cpu, column, row[column], served))
    return off, compared


def inside():
    """A busy box stretches the time between turbostat's own readings now and then: what is wrong is wrong in each try."""
    wrong = None
    for _ in range(4):
        fakecpu.reset_ledger()
        rows, pid = sample(2)
        off, compared = mismatches(rows, fakecpu.expect())
        count_off, count_compared = counts_differ(rows, fakecpu.ledger(pid))
        print("%d rows, %d rates and %d counts compared, off: %s" % (len(rows), compared, count_compared, off))
        assert count_off == [], count_off
        wrong = off if wrong is None else {k: v for k, v in off.items() if k in wrong}
        if not wrong:
            break
    assert not wrong, wrong
    n_cpus = len(fakecpu.parse_list(fakecpu.text("/sys/devices/system/cpu/online")))
    assert len(rows) == n_cpus + 1 and compared > 5 * n_cpus and count_compared > 2 * n_cpus
    assert fakecpu.ledger(pid)["write_opens"] == 0


class Turbostat(unittest.TestCase):
    def agree(self, scenario):
        done = fakecpu.run(scenario, [sys.executable, __file__, "--inside"], "--shim", stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=200)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_skx(self):
        self.agree("skx-2s")

    def test_icx(self):
        self.agree("icx-2s")

    def test_spr(self):
        self.agree("spr-2s")

    def test_epyc(self):
        self.agree("epyc")


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        inside()
        sys.exit(0)
    probe = fakecpu.run("gaps", ["true"], "--shim", stderr=subprocess.PIPE, text=True)
    if probe.returncode == fakecpu.SKIP or not TURBOSTAT:
        print(probe.stderr.strip() or "SKIP: no turbostat (package linux-cpupower)")
        sys.exit(fakecpu.SKIP)
    unittest.main(verbosity=2)
