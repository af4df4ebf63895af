#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The msr and powercap sources on the fake machine: values, units, what a sample reads, and faults."""

import unittest

from fakemachine import main, sample

CORE_REGISTERS = (0x3FC, 0x3FD, 0x3FE, 0x19C)
PACKAGE_REGISTERS = (0x60D, 0x3F8, 0x3F9, 0x3FA, 0x611, 0x619, 0x613, 0x61B, 0x1B1)


def small(model, *lines, packages=2, cores=2, threads=2):
    """A machine on which every CPU works a little: it takes interrupts, so nobody thinks it sleeps."""
    shape = ("model %s" % model, "packages %d" % packages, "cores %d" % cores, "threads %d" % threads)
    return "\n".join(shape + ("set busy=20 loc=100",) + lines) + "\n"


class Values(unittest.TestCase):
    def near(self, got, want, tolerance=0.005):
        self.assertLessEqual(abs(got - want), max(abs(want) * tolerance, 1e-6), "%g is not %g" % (got, want))

    def check_watts(self, r, field, metric):
        column = r.turns[-1].column(field)
        self.assertIsNotNone(column, field)
        for e in column:
            self.near(r.rate(field, e, "pkg_ns"), r.expect[metric, "package", e.replace("/-1", "/0")], 0.01)

    def test_skx_residencies_power_and_temperatures(self):
        r = sample("skx-2s", turns=5)
        self.near(r.rate("mperf", "5", "cpu_tsc"), 0.02)
        self.near(r.rate("aperf", "5", "cpu_ns"), 0.02 * 2800e6)
        self.near(r.rate("mperf", "2", "cpu_tsc"), 0.45)
        self.near(r.rate("cpu_tsc", "5", "cpu_ns"), r.expect["TSC_MHz", "system", "-"] * 1e6, 0.001)
        self.near(r.rate("c6", "0/-1/1", "core_tsc"), 0.94)
        self.near(r.rate("c6", "0/-1/2", "core_tsc"), 0.30)
        self.near(r.rate("pc6", "1/-1", "pkg_tsc"), 0.6125)
        self.near(r.rate("pc2", "0/-1", "pkg_tsc"), 0.125)
        self.near(r.rate("energy_pkg", "0/-1", "pkg_ns"), 38.5)
        self.near(r.rate("energy_pkg", "1/-1", "pkg_ns"), 41.0)
        self.near(r.rate("energy_ram", "1/-1", "pkg_ns"), 6.5)
        last = r.turns[-1]
        self.assertEqual(last.column("core_temp")["0/-1/2"].value, 58)
        self.assertEqual(last.column("core_temp")["1/-1/3"].value, 42)
        self.assertEqual(last.column("pkg_temp")["0/-1"].value, 45)
        self.assertIsNone(last.column("c3"))
        self.assertIsNone(last.column("energy_sys"))

    def test_what_is_published_is_what_was_served(self):
        r = sample(small("skx", "set smi=7"), turns=3)
        last = r.turns[-1]
        for cpu in range(8):
            self.assertEqual(last.column("smi")[str(cpu)].value, r.ledger.last[cpu, 0x34])
            self.assertEqual(last.column("mperf")[str(cpu)].value, r.ledger.last[cpu, 0xE7])

    def test_c04_units_of_models(self):
        for model, dram, psys in (("skx", 15.3e-6, None), ("icx", 15.3e-6, 2.0**-14), ("spr", 2.0**-14, 1.0)):
            with self.subTest(model=model):
                r = sample(small(model, "set pkg_watts=100 ram_watts=20", "set psys_watts=300" if psys else ""), turns=6)
                last = r.turns[-1]
                self.near(last.column("energy_ram")["0/-1"].scale, dram, 0.003)
                self.near(r.rate("energy_pkg", "0/-1", "pkg_ns"), 100.0, 0.01)
                self.near(r.rate("energy_ram", "1/-1", "pkg_ns"), 20.0, 0.01)
                if psys:
                    self.near(last.column("energy_sys")["-"].scale, psys)
                    self.near(r.rate("energy_sys", "-", "sys_ns"), 300.0, 0.01)
                else:
                    self.assertIsNone(last.column("energy_sys"))

    def test_amd_package_and_core_energy(self):
        r = sample(small("zen", "set pkg_watts=110 core_watts=20", cores=4), turns=5)
        last = r.turns[-1]
        self.assertEqual(len(last.column("energy_core")), 8)
        self.near(r.rate("energy_pkg", "1/-1", "pkg_ns"), 110.0)
        for e in last.column("energy_core"):
            self.near(r.rate("energy_core", e, "core_ns"), 20.0)
        for absent in ("c6", "pc6", "smi", "core_temp", "energy_cor", "energy_ram"):
            self.assertIsNone(last.column(absent), absent)


class Scenarios(unittest.TestCase):
    """Every rate the fake machine says a right tool shows, of every entity, within 1 % (or 0.05 of its unit)."""

    columns = {
        "Busy%": ("mperf", "cpu_tsc", 100), "CPU%c3": ("c3", "core_tsc", 100), "CPU%c6": ("c6", "core_tsc", 100),
        "CPU%c7": ("c7", "core_tsc", 100), "Pkg%pc2": ("pc2", "pkg_tsc", 100), "Pkg%pc3": ("pc3", "pkg_tsc", 100),
        "Pkg%pc6": ("pc6", "pkg_tsc", 100), "Pkg%pc7": ("pc7", "pkg_tsc", 100), "Pkg%pc8": ("pc8", "pkg_tsc", 100),
        "Pkg%pc9": ("pc9", "pkg_tsc", 100), "Pk%pc10": ("pc10", "pkg_tsc", 100), "PkgWatt": ("energy_pkg", "pkg_ns", 1),
        "RAMWatt": ("energy_ram", "pkg_ns", 1), "GFXWatt": ("energy_gfx", "pkg_ns", 1), "SysWatt": ("energy_sys", "sys_ns", 1),
        "PKG_%": ("pkg_throttle", "pkg_ns", 100), "RAM_%": ("ram_throttle", "pkg_ns", 100),
    }

    def compare(self, scenario):
        r = sample(scenario, turns=4, interval_ms=700, arguments=("-p", "always", "-s", "-idletrace,-perf"))
        checked = 0
        for (metric, scope, entity), want in r.expect.items():
            cores = ("energy_core", "core_ns", 1) if scope == "core" else ("energy_cor", "pkg_ns", 1)
            columns = dict(self.columns, CorWatt=cores)
            if metric not in columns:
                continue
            field, span, factor = columns[metric]
            ids = entity.split("/")
            column = r.turns[-1].column(field)
            self.assertIsNotNone(column, (metric, scope))
            if scope == "core":  # package/core; ours name the die too
                entity = next(e for e in column if e.split("/")[0] == ids[0] and e.split("/")[-1] == ids[-1])
            elif scope == "package" and entity not in column:
                entity = ids[0] + "/-1"
            got = r.rate(field, entity, span) * factor
            self.assertLessEqual(abs(got - want), max(0.01 * abs(want), 0.05), (metric, entity, got, want))
            checked += 1
        self.assertGreater(checked, 0)
        return r

    def test_ice_lake(self):
        self.compare("icx-2s")

    def test_sapphire_rapids(self):
        self.compare("spr-2s")

    def test_hybrid(self):
        self.compare("hybrid")

    def test_sierra_forest_modules(self):
        r = self.compare("srf")
        modules = r.turns[-1].column("mc6")
        self.assertGreater(len(modules), 1)
        for e in modules:
            self.assertAlmostEqual(r.rate("mc6", e, "module_tsc"), 0.8, delta=0.008)

    def test_westmere_ex(self):
        self.compare("wsm-ex-4s")

    def test_gaps_in_cpu_numbers(self):
        self.compare("gaps")

    def test_cascade_lake_ap_counts_by_die(self):
        shape = "model skx\nstepping 7\npackages 2\ndies 2\ncores 2\nthreads 1\nset busy=20 loc=100\n"
        r = self.compare(shape + "set packages=0 dies=1 pkg_watts=70 pc6=10\nset packages=1 dies=0 pkg_watts=90 pc6=20\n"
                         "set packages=0 dies=0 pkg_watts=50\nset packages=1 dies=1 pkg_watts=60\n")
        self.assertEqual(sorted(r.turns[-1].column("energy_pkg")), ["0/0", "0/1", "1/0", "1/1"])


class Cost(unittest.TestCase):
    def test_c09_one_read_of_a_package_register_a_turn(self):
        """Once at the probe, then once in each turn (on a machine under load a turn may end in a gap)."""
        r = sample("skx-2s", turns=6, interval_ms=250)
        for p in (0, 1):
            cpus = [c for c in range(32) if c % 16 // 8 == p]
            turns = sum(t.column("pc6")["%d/-1" % p].reason == "-" for t in r.turns)
            self.assertGreater(turns, 2)
            for reg in PACKAGE_REGISTERS:
                self.assertIn(r.ledger.reads(reg, cpus), (0, turns + 1), "package %d, 0x%x" % (p, reg))
            self.assertEqual(r.ledger.reads(0x611, cpus), turns + 1)

    def test_c17_nothing_is_written(self):
        r = sample("skx-2s", turns=2, interval_ms=200)
        self.assertEqual((r.ledger.write_opens, r.ledger.pwrites), (0, 0))

    def test_always_reads_every_core_once(self):
        turns = 4
        r = sample("skx-2s", turns=turns, interval_ms=500, arguments=("-p", "always", "-s", "-idletrace,-perf"))
        self.assertEqual(r.ledger.reads(0x3FD), 16 * turns + 1)
        self.assertEqual(r.ledger.reads(0xE7), 32 * turns + 1)

    def test_lazy_leaves_sleepers_alone(self):
        """Cores 1-3 of package 0 and all of package 1 sleep; CPUs 0 and 8 (core 0) work."""
        asleep = set(range(1, 8)) | set(range(9, 16))
        turns = 6
        r = sample(small("skx", "set c6=70", cores=4), turns=turns, interval_ms=300,
                   before="sleep cpus=1-7,9-15")
        # the first turn knows of no sleep, so it reads all once; after that only the awake are asked
        for reg in CORE_REGISTERS + (0xE7, 0xE8, 0x34):
            self.assertLessEqual(r.ledger.reads(reg, {0, 8}), 2 * turns + 1)
        self.assertEqual(r.ledger.reads(0x3FD, asleep), 7)
        self.assertEqual(r.ledger.reads(0xE7, asleep), 14)
        self.assertGreaterEqual(r.ledger.reads(0x3FD, {0, 8}), turns)
        # package 0 has somebody awake, package 1 sleeps whole: one CPU of it answers
        self.assertEqual(r.ledger.reads(0x611, asleep & {1, 2, 3, 9, 10, 11}), 0)
        self.assertEqual(r.ledger.reads(0x611, {4, 5, 6, 7, 12, 13, 14, 15}), turns + 1)
        last = r.turns[-1]
        self.assertEqual(last.column("c6")["0/-1/1"].reason, "asleep")
        self.assertEqual(last.column("core_tsc")["0/-1/1"].reason, "asleep")
        self.assertEqual(last.column("c6")["0/-1/0"].reason, "-")
        self.assertEqual(last.column("mperf")["9"].reason, "asleep")
        self.assertEqual(last.column("cpu_tsc")["9"].reason, "-")
        self.assertEqual(last.column("pc6")["1/-1"].reason, "-")
        first = r.turns[1]
        self.assertEqual(last.column("mperf")["9"].value, first.column("mperf")["9"].value)
        self.assertGreater(last.column("cpu_tsc")["9"].value, first.column("cpu_tsc")["9"].value)
        self.assertLessEqual(last.wakeups - first.wakeups, turns - 2)  # of package 1, one a turn

    def test_lazy_is_not_kept_awake_by_its_own_reading(self):
        """Each remote read of a sleeper is an interrupt and an idle exit; that must not count as its waking."""
        turns = 6
        asleep = set(range(2, 8)) | set(range(10, 16))  # CPUs 0 and 1 are where we run ourselves
        r = sample(small("skx", "set c6=70", cores=4), turns=turns, interval_ms=300,
                   before="set wake_on_read=1\nsleep cpus=2-7,10-15")
        self.assertEqual(r.ledger.reads(0x3FD, asleep), 6)
        self.assertEqual(r.ledger.reads(0xE7, asleep), 12)
        self.assertEqual(r.ledger.reads(0x611, {4, 5, 6, 7, 12, 13, 14, 15}), turns + 1)
        self.assertEqual(r.turns[-1].wakeups - r.turns[1].wakeups, turns - 2)

    def test_lazy_reads_who_woke(self):
        r = sample(small("skx", "set c6=70", cores=4), turns=8, interval_ms=300, before="sleep cpus=1-7,9-15",
                   during="wait 1\nwake cpus=10\nwait 0.4\nsleep cpus=10")
        self.assertGreaterEqual(r.ledger.reads(0x3FD, {10}), 1)
        self.assertEqual(r.ledger.reads(0x3FD, {3, 11}), 1)
        self.assertEqual(r.turns[-1].column("c6")["0/-1/2"].reason, "asleep")


class Faults(unittest.TestCase):
    def test_few_descriptors(self):
        r = sample("skx-2s", turns=3, arguments=("-p", "always", "-s", "msr,stat,irq"), limit="ulimit -n 16")
        last = r.turns[-1]
        for field in ("mperf", "c6", "energy_pkg"):
            self.assertEqual(set(last.reasons(field).values()), {"-"}, field)

    def test_c12_absent_register_drops_its_column_only(self):
        r = sample(small("skx"), before="eio reg=0x60d", turns=2)
        last = r.turns[-1]
        self.assertIsNone(last.column("pc2"))
        for field in ("pc6", "c6", "mperf", "energy_pkg", "pkg_temp"):
            self.assertEqual(set(last.reasons(field).values()), {"-"}, field)
        self.assertEqual(last.sources["msr"]["state"], "ok")
        self.assertIn("0x60d", last.sources["msr"]["detail"])

    def test_one_register_of_one_cpu_fails_while_running(self):
        r = sample(small("skx"), turns=5, interval_ms=400, during="wait 0.9\neio reg=0x3fd cpus=1,5")
        last = r.turns[-1]
        self.assertEqual(last.reasons("c6"), {"0/-1/0": "-", "0/-1/1": "error", "1/-1/0": "-", "1/-1/1": "-"})
        self.assertEqual(set(last.reasons("core_temp").values()), {"-"})
        self.assertIn("0x3fd", last.sources["msr"]["hint"])
        self.assertEqual(last.sources["msr"]["state"], "ok")

    def test_c08_vm_proves_nothing(self):
        r = sample("model vm\npackages 1\ncores 2\nthreads 1\n", turns=2)
        last = r.turns[-1]
        for field in ("mperf", "c6", "pc6", "energy_pkg", "core_temp", "smi"):
            self.assertIsNone(last.column(field), field)
        self.assertIsNotNone(last.column("stat_busy"))
        self.assertNotEqual(last.sources["msr"]["state"], "ok")
        self.assertTrue(last.sources["msr"]["hint"])

    def test_c08_zeros_of_a_hypervisor_are_no_values(self):
        """Every register can be read and is 0: 0.00 W for ever, 0 % busy."""
        r = sample(small("skx", "msr_zero 1", "hypervisor 1", "zones none"), turns=2)
        last = r.turns[-1]
        for field in ("mperf", "aperf", "c6", "pc6", "energy_pkg", "core_temp", "smi", "pkg_throttle"):
            self.assertIsNone(last.column(field), field)
        self.assertEqual(last.sources["msr"]["state"], "absent")
        self.assertIn("virtual machine", last.sources["msr"]["hint"])
        self.assertIsNotNone(last.column("stat_busy"))

    def test_c08_refused_and_missing(self):
        for statement, state in (("fail msr EPERM", "denied"), ("fail msr EACCES", "denied"), ("hide msr", "absent")):
            with self.subTest(statement=statement):
                last = sample(small("skx"), turns=2, interval_ms=200, before=statement).turns[-1]
                self.assertEqual(last.sources["msr"]["state"], state)
                self.assertTrue(last.sources["msr"]["hint"])
                self.assertIsNone(last.column("c6"))
                # and then powercap is the next best for energy
                self.assertEqual(set(last.reasons("energy_pkg").values()), {"-"})

    def test_c13_reader_goes_offline(self):
        r = sample(small("skx", cores=4, threads=1), turns=8, interval_ms=300, during="wait 0.8\noffline cpu=4\nwait 0.7\nonline cpu=4")
        for t in r.turns:
            self.assertEqual(t.column("energy_pkg")["1/-1"].reason, "-")
        self.assertLess(min(len(t.column("mperf")) for t in r.turns), 8)
        self.assertEqual(len(r.turns[-1].column("mperf")), 8)

    def test_c15_a_slow_cpu_does_not_hold_up_the_rest(self):
        r = sample(small("skx"), turns=5, interval_ms=500, during="wait 1.2\nslow reg=all cpu=3 ms=150")
        last = r.turns[-1]
        self.assertEqual(last.column("mperf")["3"].reason, "gap")
        self.assertEqual(last.column("mperf")["0"].reason, "-")
        self.assertEqual(set(last.reasons("energy_pkg").values()), {"-"})


class Powercap(unittest.TestCase):
    only = ("-s", "-msr,-perf,-idletrace")

    def test_watts_and_ranges(self):
        r = sample(small("skx", "set pkg_watts=100 ram_watts=20"), turns=5, arguments=self.only)
        last = r.turns[-1]
        for e in ("0/-1", "1/-1"):
            self.assertAlmostEqual(r.rate("energy_pkg", e, "pkg_ns"), 100.0, delta=1.0)
            self.assertAlmostEqual(r.rate("energy_ram", e, "pkg_ns"), 20.0, delta=0.2)
        self.assertEqual(last.column("energy_pkg")["0/-1"].scale, 1e-6)
        self.assertGreater(last.column("energy_pkg")["0/-1"].range, 1 << 32)
        self.assertEqual(r.ledger.msr, {})

    def test_c08_einval(self):
        last = sample(small("skx"), turns=2, interval_ms=200, arguments=self.only, before="fail energy_uj EINVAL").turns[-1]
        self.assertEqual(set(last.reasons("energy_pkg").values()), {"error"})
        self.assertEqual(last.sources["powercap"]["state"], "error")
        self.assertTrue(last.sources["powercap"]["hint"])

    def test_c07_energy_is_for_root(self):
        """An ordinary user is denied energy and its range; once allowed, values appear without a restart."""
        user = "setpriv --reuid 65534 --regid 65534 --clear-groups --"
        r = sample(small("skx", "set pkg_watts=100"), turns=34, interval_ms=400, arguments=self.only, prefix=user,
                   during="wait 2\n! chmod 0444 /sys/class/powercap/*:*/energy_uj")
        denied, last = r.turns[1], r.turns[-1]
        self.assertEqual(set(denied.reasons("energy_pkg").values()), {"denied"})
        self.assertEqual(denied.sources["powercap"]["state"], "denied")
        self.assertIn("CAP_DAC_READ_SEARCH", denied.sources["powercap"]["hint"])
        self.assertEqual(set(denied.reasons("stat_busy").values()), {"-"})
        self.assertEqual(last.sources["powercap"]["state"], "ok")
        self.assertEqual(set(last.reasons("energy_pkg").values()), {"-"})
        self.assertGreater(last.column("energy_pkg")["0/-1"].range, 1 << 32)

    def test_one_zone_fails(self):
        last = sample(small("skx"), turns=2, interval_ms=200, arguments=self.only,
                      before="fail energy_uj EIO zone=intel-rapl:1").turns[-1]
        self.assertEqual(last.reasons("energy_pkg"), {"0/-1": "-", "1/-1": "error"})
        self.assertEqual(last.sources["powercap"]["state"], "ok")

    def test_no_zones(self):
        last = sample(small("skx"), turns=2, interval_ms=200, arguments=self.only, before="hide powercap").turns[-1]
        self.assertEqual(last.sources["powercap"]["state"], "absent")
        self.assertIsNone(last.column("energy_pkg"))


if __name__ == "__main__":
    main()
