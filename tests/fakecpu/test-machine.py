#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The fake machine against its scenarios: each test runs itself once more on the machine, with --inside NAME."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import fakecpu
from fakecpu import Msr, errno_of, expect, ledger, parse_list, reset_ledger, set_, text

CPU = "/sys/devices/system/cpu/"
POWERCAP = "/sys/class/powercap/"
INSIDE = {}


def on(scenario, *options):
    """A function that runs on the machine becomes a test method that runs it there."""

    def decorate(function):
        INSIDE[function.__name__] = function

        def method(self):
            done = fakecpu.run(scenario, [sys.executable, __file__, "--inside", function.__name__], *options,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout)

        method.__doc__ = function.__doc__
        return method

    return decorate


def near(a, b, absolute):
    assert abs(a - b) <= absolute, "%r is not %r ± %r" % (a, b, absolute)


def same(a, b):
    assert a == b, "%r is not %r" % (a, b)


def delta(row):
    return row.last - row.first, row.last_ns - row.first_ns


class Registers(unittest.TestCase):
    @on("skx-2s")
    def test_present_and_absent(self=None):
        m = Msr(3)
        for reg in (0x10, 0xe7, 0xe8, 0x34, 0xce, 0xe2, 0x1a2, 0x19c, 0x1b1, 0x3f9, 0x3fd, 0x60d, 0x606, 0x611, 0x613,
                    0x619, 0x61b):
            same(m.errno(reg), 0)
        for reg in (0x3fc, 0x3fe, 0x660, 0x664, 0x3f8, 0x3fa, 0x630, 0x631, 0x632, 0x639, 0x641, 0x64d, 0x0, 0xc0010299):
            same(m.errno(reg), errno.EIO)
        same(m[0x1a2] >> 16 & 0xff, 96)
        same(m[0x19c] >> 16 & 0x7f, 96 - 42)
        same(m[0x19c] >> 31, 1)
        same(m[0x606], 0xa0e03)

    @on("skx-2s")
    def test_sizes_and_offsets(self=None):
        m = Msr(0)
        for size in (1, 4, 7, 9, 12):
            same(m.errno(0x3fd, size), errno.EINVAL)
        same(len(os.pread(m.fd, 16, 0x3fd)), 16)
        # The offset is a register's number: neighbours do not overlap.
        same(m.errno(0x3fc), errno.EIO)
        same(m.errno(0x3fd), 0)

    @on("skx-2s")
    def test_never_written(self=None):
        fd = os.open("/dev/cpu/1/msr", os.O_RDWR)
        same(errno_of(os.pwrite, fd, b"\0" * 8, 0x610), errno.EPERM)
        fd2 = os.open("/dev/cpu/1/msr", os.O_WRONLY)
        same((ledger()["write_opens"], ledger()["pwrites"]), (2, 1))
        os.close(fd)
        os.close(fd2)

    @on("skx-2s")
    def test_scopes(self=None):
        """Siblings share the core's counters, packages do not share theirs."""
        a, b, other = Msr(3), Msr(19), Msr(8)
        values = [m[0x3fd] for m in (a, b, a)]
        assert values == sorted(values), values
        values = [m[0x611] for m in (a, b, Msr(7))]
        assert values == sorted(values) and values[2] - values[0] < 1 << 20, values
        assert abs(other[0x611] - a[0x611]) > 1 << 20

    @on("skx-2s")
    def test_cpuid(self=None):
        fd = os.open("/dev/cpu/5/cpuid", os.O_RDONLY)

        def leaf(n, sub=0):
            raw = os.pread(fd, 16, sub << 32 | n)
            return [int.from_bytes(raw[i:i + 4], "little") for i in range(0, 16, 4)]

        same(os.pread(fd, 16, 0)[4:16], b"GenuntelineI")
        same(leaf(1)[0], 0x50654)
        same(leaf(0xb)[1], 2)
        same(leaf(0xb, 1)[1], 16)
        same(leaf(6)[2] & 1, 1)
        same(leaf(0x40000000), [0, 0, 0, 0])


class Rates(unittest.TestCase):
    @on("skx-2s")
    def test_registers_exact(self=None):
        """By the machine's own time, each difference is the rate to the count, over two seconds."""
        hz = fakecpu.counters()["tsc_hz"]
        cpus = {cpu: Msr(cpu) for cpu in (0, 2, 8)}
        regs = {0xe7: ("Busy%", hz / 100), 0x3fd: ("CPU%c6", hz / 100), 0x60d: ("Pkg%pc2", hz / 100),
                0x3f9: ("Pkg%pc6", hz / 100), 0x611: ("PkgWatt", 2 ** 14), 0x619: ("RAMWatt", 1e6 / 15.3),
                0x34: ("SMI/s", 1)}
        for _ in range(2):
            for m in cpus.values():
                for reg in regs:
                    m[reg]
            time.sleep(1)
        want, got = expect(), ledger()
        ids = {"cpu": "{cpu}", "core": "{package}/{core}", "package": "{package}/0"}
        for cpu in cpus:
            for reg, (metric, per_unit) in regs.items():
                counts, ns = delta(got["msr", cpu, reg])
                scope = next(s for m, s, _ in want if m == metric)
                key = ids[scope].format(cpu=cpu, core=cpu % 8, package=cpu // 8)
                near(counts, want[metric, scope, key] * per_unit * ns / 1e9, 1.5)
            busy, _ = delta(got["msr", cpu, 0xe7])
        assert busy > 0

    @on("skx-2s")
    def test_frequency(self=None):
        """APERF runs at busy * MHz: 45 % of 3200 MHz."""
        m = Msr(2)
        m[0xe8]
        time.sleep(0.5)
        m[0xe8]
        counts, ns = delta(ledger()["msr", 2, 0xe8])
        near(counts, 0.45 * 3200e6 * ns / 1e9, 1.5)

    @on("skx-2s")
    def test_idle_and_interrupts_exact(self=None):
        files = {(cpu, state, name): open(CPU + "cpu%d/cpuidle/state%d/%s" % (cpu, state, name), "rb", buffering=0)
                 for cpu in (0, 2) for state in range(4) for name in ("usage", "time", "above", "below", "rejected")}
        for _ in range(2):
            for f in files.values():
                os.pread(f.fileno(), 32, 0)
            text("/proc/interrupts")
            time.sleep(1)
        want, got = expect(), ledger()
        names = ["POLL", "C1", "C1E", "C6"]
        marks = {"usage": "", "time": "%", "above": "-", "below": "+", "rejected": "!"}
        for cpu, state, name in files:
            counts, ns = delta(got["idle", cpu, "state%d" % state, name])
            rate = want[names[state] + marks[name], "cpu", str(cpu)] * (1e4 if name == "time" else 1)
            near(counts, rate * ns / 1e9, 1.0)
        for cpu in (0, 2):
            counts, ns = delta(got["irq", cpu])
            near(counts, want["IRQ/s", "cpu", str(cpu)] * ns / 1e9, 5)

    @on("skx-2s")
    def test_sum_is_whole(self=None):
        want = expect()
        for cpu in range(32):
            core = "%d/%d" % (cpu % 16 // 8, cpu % 8)
            near(sum(want[k] for k in (("Busy%", "cpu", str(cpu)), ("CPU%c1", "cpu", str(cpu)), ("CPU%c6", "core", core))),
                 100, 1e-6)

    @on("skx-2s")
    def test_powercap_agrees_with_registers(self=None):
        """energy_uj is the register in the kernel's whole nanojoules, read before and after it."""
        m = Msr(0)
        for zone, reg, unit in (("intel-rapl:0", 0x611, 61035), ("intel-rapl:0:0", 0x619, 15300)):
            before, uj, after = m[reg], int(text(POWERCAP + zone + "/energy_uj")), m[reg]
            assert before * unit // 1000 <= uj <= after * unit // 1000, (before, uj, after)
        same(int(text(POWERCAP + "intel-rapl:0/max_energy_range_uj")), 262143328850)
        same(int(text(POWERCAP + "intel-rapl:0:0/max_energy_range_uj")), 65712999613)

    @on("skx-2s")
    def test_stat(self=None):
        """Jiffies: busy as told, and the columns sum up to the time that passed on every CPU."""
        def read():
            return {line.split()[0]: list(map(int, line.split()[1:]))
                    for line in text("/proc/stat").splitlines() if line.startswith("cpu")}
        before = read()
        time.sleep(1.5)
        after = read()
        sums = {cpu: sum(after[cpu]) - sum(before[cpu]) for cpu in after if cpu != "cpu"}
        same(len(sums), 32)
        same(len(set(sums.values())), 1)
        total = sums["cpu2"]
        near(100 * (after["cpu2"][0] + after["cpu2"][2] + after["cpu2"][6] - before["cpu2"][0] - before["cpu2"][2] -
                    before["cpu2"][6]) / total, 45, 300 / total)
        assert total >= 140, total

    @on("regression", "--set", "story=1s")
    def test_story(self=None):
        before = expect()
        m = Msr(0)
        deadline = time.monotonic() + 30
        while expect()["CPU%c6", "core", "0/0"] != 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        after = expect()
        same(before["CPU%c6", "core", "1/7"], 95)
        same(after["PkgWatt", "package", "1/0"] - before["PkgWatt", "package", "1/0"], 50)
        same((before["break_bound/s", "cpu", "9"], after["break_bound/s", "cpu", "9"]), (0, 356))
        reset_ledger()
        m[0x3fd]
        time.sleep(0.3)
        m[0x3fd]
        counts, ns = delta(ledger()["msr", 0, 0x3fd])
        near(counts, 0.20 * fakecpu.counters()["tsc_hz"] * ns / 1e9, 1.5)

    @on("skx-2s", "--event", "every 200ms preset smi=7 cpus=1")
    def test_every(self=None):
        time.sleep(0.6)
        same(Msr(1)[0x34], 7)


class Faults(unittest.TestCase):
    @on("skx-2s")
    def test_eio(self=None):
        m, other = Msr(3), Msr(4)
        set_("eio cpu=3 reg=0x3fd")
        same((m.errno(0x3fd), m.errno(0x3f9), other.errno(0x3fd)), (errno.EIO, 0, 0))
        set_("ok reg=0x3fd")
        same(m.errno(0x3fd), 0)
        set_("eio reg=all cpus=3-4", "ok cpu=4")
        same((m.errno(0x10), other.errno(0x10)), (errno.EIO, 0))

    @on("skx-2s")
    def test_wrap(self=None):
        m = Msr(0)
        uj = POWERCAP + "intel-rapl:0/energy_uj"
        set_("wrap pkg_watts packages=0 in=500ms", "wrap loc cpus=0 in=500ms")
        before, before_uj = m[0x611], int(text(uj))
        assert before > 1 << 31 and before_uj > 2 ** 37, (before, before_uj)
        loc = [line for line in text("/proc/interrupts").splitlines() if line.strip().startswith("LOC")][0].split()[1]
        assert int(loc) > 2 ** 32 - 1000, loc
        deadline = time.monotonic() + 30
        while m[0x611] >= before and time.monotonic() < deadline:
            time.sleep(0.05)
        after = m[0x611]
        row = ledger()["msr", 0, 0x611]
        same(row.last, after)
        near((after - before) % 2 ** 32, 38.5 * 2 ** 14 * (row.last_ns - row.first_ns) / 1e9, 2)
        assert int(text(uj)) < before_uj

    @on("skx-2s")
    def test_reset_and_preset(self=None):
        m = Msr(8)
        set_("reset energy residency packages=1", "preset pkg_watts=1000000 packages=0")
        assert m[0x611] < 1 << 22 and m[0x3fd] < 1 << 40
        assert 1000000 <= Msr(0)[0x611] < 1 << 22
        set_("reset packages=0 cpuidle irq")
        c = fakecpu.counters()
        assert c["cpu", "0", "C6.usage"] < 1000 and c["cpu", "0", "irqs"] < 1000
        assert c["cpu", "8", "C6.usage"] > 1000 and c["cpu", "8", "irqs"] > 1000

    @on("skx-2s")
    def test_slow_read_holds_up_nobody(self=None):
        set_("slow cpu=3 reg=0x611 ms=1500")
        m, done = Msr(3), []
        thread = threading.Thread(target=lambda: done.append(m[0x611]))
        thread.start()
        for _ in range(20):
            Msr(4)[0x611]
            m[0x10]
        same(done, [])
        thread.join(30)
        same(len(done), 1)

    @on("skx-2s")
    def test_slow_reader_can_be_killed(self=None):
        set_("slow cpu=3 reg=0x611 ms=60000")
        child = subprocess.Popen([sys.executable, "-c", "import os; os.pread(os.open('/dev/cpu/3/msr', 0), 8, 0x611)"])
        deadline = time.monotonic() + 30
        while ("file", "msr") not in ledger(child.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)
        child.send_signal(signal.SIGTERM)
        same(child.wait(20), -signal.SIGTERM)

    @on("skx-2s")
    def test_hotplug(self=None):
        m, node = Msr(5), CPU + "cpu5/"
        before, usage = m[0xe7], open(node + "cpuidle/state3/usage", "rb", buffering=0)
        os.pread(usage.fileno(), 32, 0)
        set_("offline cpu=5")
        same(m.errno(0x10), errno.ENXIO)
        same(errno_of(os.open, "/dev/cpu/5/msr", os.O_RDONLY) in (errno.ENOENT, errno.ENXIO), True)
        same((os.path.exists(node + "topology"), os.path.exists(node + "cpuidle"), text(node + "online")),
             (False, False, "0\n"))
        same((text(CPU + "online"), text(CPU + "offline"), text(CPU + "present")), ("0-4,6-31\n", "5\n", "0-31\n"))
        same(errno_of(os.pread, usage.fileno(), 32, 0), errno.ENODEV)
        same(text(CPU + "cpu21/topology/thread_siblings_list"), "21\n")
        same("CPU5 " in text("/proc/interrupts").splitlines()[0], False)
        same("cpu5 " in text("/proc/stat"), False)
        with open(node + "online", "w") as f:
            f.write("1")
        again = Msr(5)
        assert again[0xe7] < before, (again[0xe7], before)
        assert os.path.exists(node + "topology") and os.path.exists(node + "cpuidle/state3/usage")
        same(text(CPU + "cpu21/topology/thread_siblings_list"), "5,21\n")

    @on("skx-2s", "--event", "at 500ms offline cpu=5", "--event", "at 1s online cpu=5 keep=1")
    def test_hotplug_by_timetable(self=None):
        seen, deadline = set(), time.monotonic() + 30
        while seen != {"0\n", "1\n", "back"} and time.monotonic() < deadline:
            state = text(CPU + "cpu5/online")
            seen.add("back" if "0\n" in seen and state == "1\n" else state)
            same(os.path.exists(CPU + "cpu5/topology"), state == "1\n")
            time.sleep(0.02)
        same(seen, {"0\n", "1\n", "back"})

    @on("skx-2s")
    def test_permissions(self=None):
        def as_nobody(code):
            return subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c",
                                   "import os, sys\ntry:\n  %s\nexcept OSError as e:\n  sys.exit(e.errno)" % code]).returncode
        read_uj = "print(open('%sintel-rapl:0/energy_uj').read())" % POWERCAP
        read_msr = "os.pread(os.open('/dev/cpu/0/msr', os.O_RDONLY), 8, 0x10)"
        same((as_nobody(read_uj), as_nobody(read_msr)), (errno.EACCES, errno.EACCES))
        set_("chmod energy_uj 0444", "chmod msr 0444")
        same((as_nobody(read_uj), as_nobody(read_msr)), (0, errno.EPERM))
        os.chmod(POWERCAP + "intel-rapl:1/energy_uj", 0o400)
        same(as_nobody(read_uj), errno.EACCES)
        same(os.stat("/dev/cpu/7/msr").st_mode & 0o777, 0o444)

    @on("skx-2s")
    def test_fail_and_hide(self=None):
        set_("fail msr EPERM", "fail energy_uj EINVAL zone=intel-rapl:0")
        same(errno_of(os.open, "/dev/cpu/0/msr", os.O_RDONLY), errno.EPERM)
        same(errno_of(text, POWERCAP + "intel-rapl:0/energy_uj"), errno.EINVAL)
        text(POWERCAP + "intel-rapl:1/energy_uj")
        set_("fail msr ok", "fail energy_uj ok", "hide powercap", "hide cpuidle")
        Msr(0)
        same((os.listdir(POWERCAP), os.path.exists(CPU + "cpu0/cpuidle")), ([], False))
        same(text(CPU + "cpuidle/current_driver"), "none\n")
        set_("show powercap", "show cpuidle", "hide msr")
        same((len(os.listdir(POWERCAP)), os.path.exists("/dev/cpu/0/msr")), (5, False))
        text(CPU + "cpu0/cpuidle/state1/usage")

    @on("skx-2s")
    def test_wrong_statements(self=None):
        for wrong in ("nonsense", "set", "set c6=95", "set c6=101", "set c6=-1", "set c9=1", "set C9.time=1", "offline cpu=99",
                      "eio cpu=1", "slow reg=1", "chmod msr 9", "fail msr EWHAT", "wrap c6", "set mode=jump", "at x set c6=1",
                      "at story set c6=1", "set zone=intel-rapl:0 watts=3", "preset mhz=1 cpus=x"):
            if wrong != "set":
                same((wrong, errno_of(set_, wrong)), (wrong, errno.EINVAL))
        same(expect()["CPU%c6", "core", "0/0"], 94)


class Sleep(unittest.TestCase):
    @on("asleep")
    def test_sleeper(self=None):
        """Usage, time and interrupts stand still, the core's C6 runs on, a register read is seen as a wake."""
        def software(cpu):
            c = fakecpu.counters()
            return [c["cpu", str(cpu), k] for k in ("C6.usage", "C6.time", "irqs", "mperf")]
        before, awake = software(4), software(0)
        m = Msr(4)
        time.sleep(0.3)
        same(software(4), before)
        assert all(b > a for a, b in zip(awake, software(0)))
        m[0x3fd]
        time.sleep(0.3)
        m[0x3fd]
        counts, ns = delta(ledger()["msr", 4, 0x3fd])
        near(counts, fakecpu.counters()["tsc_hz"] * ns / 1e9, 1.5)
        same(ledger()["wakes", 4], 2)
        same(software(4)[:3], before[:3])
        set_("wake cpus=4")
        after = software(4)
        same(after[0] - before[0], 1)
        assert after[1] - before[1] >= 600000, (before, after)

    @on("asleep", "--set", "wake_on_read=1")
    def test_wake_on_read(self=None):
        m = Msr(20)
        before = fakecpu.counters()["cpu", "20", "C6.usage"]
        for _ in range(3):
            m[0x10]
        same(fakecpu.counters()["cpu", "20", "C6.usage"] - before, 3)

    @on("all-wake", "--set", "wake=100ms")
    def test_step(self=None):
        """Time and usage move together and only at wakes."""
        path = CPU + "cpu3/cpuidle/state3/"
        first = fakecpu.counters()["time_ns"]
        values, last = set(), None
        for _ in range(60):
            values.add((int(text(path + "usage")), int(text(path + "time"))))
            time.sleep(0.01)
        wakes = (fakecpu.counters()["time_ns"] - first) // 100000000 + 2
        assert 2 <= len({t for _, t in values}) <= wakes, values

    @on("all-wake")
    def test_step_size(self=None):
        """A stretch of 97.5 % over a wake period comes in one step of 195 ms."""
        path = CPU + "cpu3/cpuidle/state3/time"
        seen = [int(text(path))]
        deadline = time.monotonic() + 30
        while len(seen) < 4 and time.monotonic() < deadline:
            value = int(text(path))
            if value != seen[-1]:
                seen.append(value)
            time.sleep(0.01)
        steps = {round((b - a) / 195000) * 195000 - (b - a) for a, b in zip(seen[1:], seen[2:])}
        assert all(abs(s) <= 1 for s in steps), seen


class Ledger(unittest.TestCase):
    @on("skx-2s")
    def test_counts(self=None):
        m = Msr(6)
        reset_ledger()
        for _ in range(17):
            m[0x3fd]
        with open("/proc/interrupts", "rb", buffering=0) as f:
            f.read()
        last = text(CPU + "cpu6/cpuidle/state3/usage")
        got = ledger()
        same(got["msr", 6, 0x3fd].count, 17)
        same(got["file", "msr"], (0, 17))
        same(got["file", "interrupts"], (1, 1))
        same(got["file", "cpuidle"], (1, 1))
        same(got["idle", 6, "state3", "usage"].last, int(last))
        same([k for k in got if k[0] == "msr"], [("msr", 6, 0x3fd)])

    @on("skx-2s")
    def test_interrupts_as_served(self=None):
        rows = [line.split() for line in text("/proc/interrupts").splitlines()]
        total = [0] * 32
        for row in rows[1:]:
            if row[0] not in ("ERR:", "MIS:"):
                for i in range(32):
                    total[i] += int(row[1 + i])
        got = ledger()
        same(total, [got["irq", cpu].last for cpu in range(32)])

    @on("skx-2s")
    def test_clients_apart(self=None):
        subprocess.run(["dd", "if=/dev/cpu/1/msr", "of=/dev/null", "bs=8", "count=1", "iflag=skip_bytes", "skip=1021"],
                       stderr=subprocess.DEVNULL, check=True)
        lines = [line.split() for line in text(fakecpu.ctl("ledger")).splitlines() if line.startswith("msr 1 0x3fd")]
        same([(w[4], w[5]) for w in lines], [("dd", "1")])


class Machines(unittest.TestCase):
    @on("icx-2s")
    def test_icx(self=None):
        Models.units({"0/0": 0, "1/0": 8}, ram_joule=15.3e-6, psys_joule=2.0 ** -14)
        same(Msr(0).errno(0x660), 0)

    @on("spr-2s")
    def test_spr(self=None):
        Models.units({"0/0": 0, "1/0": 32}, ram_joule=2.0 ** -14, psys_joule=1.0)
        same(len(parse_list(text(CPU + "online"))), 128)

    @on("epyc")
    def test_epyc(self=None):
        cpus = [Msr(cpu) for cpu in (0, 4, 16)]  # both dies of package 0, and the first one's sibling
        same(cpus[0][0xc0010299] >> 8 & 0x1f, 16)
        for reg in (0x611, 0x606, 0x3fd, 0x34, 0x19c):
            same(cpus[0].errno(reg), errno.EIO)
        for _ in range(2):
            for m in cpus:
                m[0xc001029a], m[0xc001029b]
            time.sleep(1)
        got, want = ledger(), expect()
        for cpu in (0, 4, 16):
            counts, ns = delta(got["msr", cpu, 0xc001029b])
            near(counts, want["PkgWatt", "package", "0/0"] * 65536 * ns / 1e9, 1.5)
            counts, ns = delta(got["msr", cpu, 0xc001029a])
            near(counts, want["CorWatt", "core", "0/0"] * 65536 * ns / 1e9, 1.5)
        same((text(CPU + "cpu4/topology/die_id"), text(CPU + "cpuidle/current_driver")), ("1\n", "acpi_idle\n"))
        same("vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n" in text("/proc/cpuinfo"), True)

    @on("wsm-ex-4s")
    def test_wsm_ex(self=None):
        m = Msr(79)
        same([m.errno(r) for r in (0x3fc, 0x3fd, 0x3f8, 0x3f9, 0x606, 0x611, 0x3fe, 0x60d)], [0] * 4 + [errno.EIO] * 4)
        raw = os.pread(os.open("/dev/cpu/0/cpuid", os.O_RDONLY), 16, 1)
        same(int.from_bytes(raw[:4], "little"), 0x206f2)
        same("clflush_monitor" in text("/proc/cpuinfo"), True)
        same(os.path.exists(POWERCAP), False)
        same(text(CPU + "cpu5/topology/core_id"), "16\n")

    @on("wsm-ex-4s", "--set", "bugs=cpu_meltdown")
    def test_wsm_ex_old_kernel(self=None):
        same("clflush_monitor" in text("/proc/cpuinfo"), False)

    @on("hybrid")
    def test_hybrid(self=None):
        def names(cpu):
            path = CPU + "cpu%d/cpuidle/" % cpu
            return [text(path + "state%d/name" % i).strip() for i in range(len(os.listdir(path)))]
        same((names(0), names(16)), (["POLL", "C1E", "C6", "C8", "C10"], ["POLL", "C1E", "C6"]))
        same((text(CPU + "cpu1/topology/thread_siblings_list"), text(CPU + "cpu13/topology/thread_siblings_list"),
              text(CPU + "cpu13/topology/cluster_cpus_list")), ("0-1\n", "13\n", "12-15\n"))
        leaf = {cpu: os.pread(os.open("/dev/cpu/%d/cpuid" % cpu, os.O_RDONLY), 16, 0x1a)[3] for cpu in (0, 12)}
        same(leaf, {0: 0x40, 12: 0x20})
        same(sorted(os.listdir(POWERCAP)), ["intel-rapl", "intel-rapl-mmio", "intel-rapl-mmio:0", "intel-rapl-mmio:0:0",
                                            "intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:0:2",
                                            "intel-rapl:1"])
        same(text(POWERCAP + "intel-rapl:1/name"), "psys\n")

    @on("srf")
    def test_modules(self=None):
        same((text(CPU + "cpu5/topology/cluster_id"), text(CPU + "cpu5/topology/cluster_cpus_list")), ("4\n", "4-7\n"))
        a, b = Msr(4)[0x664], Msr(7)[0x664]
        assert 0 <= b - a < 1 << 32

    @on("vm")
    def test_vm(self=None):
        same((os.listdir("/dev/cpu"), text(CPU + "cpuidle/current_driver")), ([], "none\n"))
        same((os.path.exists(CPU + "cpu0/cpuidle"), os.path.exists(POWERCAP)), (False, False))
        same("hypervisor" in text("/proc/cpuinfo"), True)

    @on("vm", "--set", "msr_zero=1")
    def test_vm_of_zeroes(self=None):
        m = Msr(1)
        same([m[reg] for reg in (0x34, 0x611, 0xe7, 0x3fd, 0x12345)], [0] * 5)

    @on("gaps")
    def test_gaps(self=None):
        same(text(CPU + "online"), "0-1,8-9,16-17,152-153\n")
        same(text(CPU + "cpu153/topology/thread_siblings_list"), "152-153\n")
        same((text(CPU + "cpu8/topology/core_id"), text(CPU + "cpu16/topology/physical_package_id")), ("8\n", "1\n"))
        same(sorted(map(int, os.listdir("/dev/cpu"))), [0, 1, 8, 9, 16, 17, 152, 153])

    @on("gaps", "--set", "cpus=1-2,9-10,17-18,153-154")
    def test_no_cpu0(self=None):
        same(os.path.exists(CPU + "cpu0"), False)
        Msr(154)[0x10]

    @on("odd-zones")
    def test_odd_zones(self=None):
        zones = {z: text(POWERCAP + z + "/name").strip() for z in os.listdir(POWERCAP) if ":" in z}
        same(sorted(zones.values()), sorted(["package-0", "core", "uncore", "dram", "package-15", "package-1-die-3", "psys",
                                             "package", "package", "package-0", "strange_name", "package-0", "dtpm"]))
        set_("preset zone=intel-rapl:1 uj=262143328000")
        seen = int(text(POWERCAP + "intel-rapl:1/energy_uj"))
        assert seen >= 262143328000 or seen < 2500000, seen
        same(os.readlink(POWERCAP + "intel-rapl:0:1"), "../../devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:1")
        assert os.path.samefile(POWERCAP + "intel-rapl:0:1", "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:1")

    @on("odd-idle")
    def test_odd_idle(self=None):
        path = CPU + "cpu1/cpuidle/"
        same(sum(os.path.exists(path + d + "/name") for d in os.listdir(path)), 11)
        same((text(path + "state10/name"), os.listdir(path + "driver"), text(path + "state1/name")), ("C10\n", [], "C1_ACPI\n"))

    @on("skx-512")
    def test_512(self=None):
        def output(*command):
            return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        same(len(os.listdir("/dev/cpu")), 512)
        same(len(text("/proc/interrupts").splitlines()[0].split()), 512)
        same(text("/proc/cpuinfo").count("processor\t"), 512)
        lines = dict(line.split(":", 1) for line in output("lscpu").splitlines() if ":" in line)
        same((lines["CPU(s)"].strip(), lines["Socket(s)"].strip(), lines["Core(s) per socket"].strip()), ("512", "2", "128"))
        Msr(511)[0x3fd]

    @on("skx-512")
    def test_512_cpupower(self=None):
        try:
            out = subprocess.run(["cpupower", "-c", "511", "idle-info"], stdout=subprocess.PIPE, text=True).stdout
        except FileNotFoundError:
            return
        assert "Available idle states: POLL C1 C1E C6" in out, out


class Models:
    @staticmethod
    def units(cpus, ram_joule, psys_joule):
        """Watts that come out of the registers with these units are the scenario's."""
        msrs = {id_: Msr(cpu) for id_, cpu in cpus.items()}
        for _ in range(2):
            for m in msrs.values():
                m[0x611], m[0x619], m[0x64d]
            time.sleep(1)
        got, want = ledger(), expect()
        for id_, cpu in cpus.items():
            for reg, joule, key in ((0x611, 2.0 ** -14, ("PkgWatt", "package", id_)), (0x619, ram_joule, ("RAMWatt", "package", id_)),
                                    (0x64d, psys_joule, ("SysWatt", "system", "-"))):
                counts, ns = delta(got["msr", cpu, reg])
                near(counts, want[key] / joule * ns / 1e9, 1.5)


class Launcher(unittest.TestCase):
    def run_machine(self, *command, **kwargs):
        return fakecpu.run("gaps", list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)

    def test_status(self):
        self.assertEqual(self.run_machine("sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(self.run_machine("sh", "-c", "kill -9 $$").returncode, 128 + 9)
        self.assertEqual(self.run_machine("/nonexistent").returncode, 127)
        self.assertEqual(fakecpu.run("no-such", ["true"], stderr=subprocess.DEVNULL).returncode, 125)
        self.assertEqual(fakecpu.run("gaps", ["true"], "--set", "c6=99", stderr=subprocess.DEVNULL).returncode, 125)

    def test_nothing_stays(self):
        done = self.run_machine("sh", "-c", "dirname $FAKECPU_CTL")
        directory = done.stdout.strip()
        self.assertTrue(directory.startswith("/tmp/fakecpu."), done.stdout)
        self.assertFalse(os.path.exists(directory))

    def test_nothing_stays_after_kill(self):
        """The launcher is killed: command, file system and mount point go."""
        launcher = subprocess.Popen([os.path.join(fakecpu.HERE, "run"), "gaps", "--", "sh", "-c",
                                     "echo $FAKECPU_CTL $$; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
        directory, pid = launcher.stdout.readline().split()
        launcher.kill()
        launcher.wait()
        deadline = time.monotonic() + 30
        while (os.path.exists(os.path.dirname(directory)) or os.path.exists("/proc/" + pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(os.path.dirname(directory)))
        self.assertFalse(os.path.exists("/proc/" + pid))
        launcher.stdout.close()

    def test_term_is_passed_on(self):
        launcher = subprocess.Popen([os.path.join(fakecpu.HERE, "run"), "gaps", "--", "sh", "-c",
                                     "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"],
                                    stdout=subprocess.PIPE, text=True)
        launcher.stdout.readline()
        launcher.terminate()
        self.assertEqual(launcher.wait(30), 7)
        launcher.stdout.close()


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--inside":
        INSIDE[sys.argv[2]]()
        sys.exit(0)
    reason = fakecpu.available()
    if reason:
        print(reason)
        sys.exit(fakecpu.SKIP)
    unittest.main(verbosity=2)
