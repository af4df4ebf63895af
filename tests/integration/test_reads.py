# SPDX-License-Identifier: GPL-2.0-or-later
"""What the daemon asks of the hardware, by the fake machine's ledger: whom it wakes, and in which units it counts."""

from machinebed import Daemon, MachineTest, fakecpu, main

THREAD = (0xE7, 0xE8, 0x34)
CORE = (0x3FC, 0x3FD, 0x3FE, 0x660, 0x19C)
PACKAGE = (0x60D, 0x3F8, 0x3F9, 0x3FA, 0x611, 0x619, 0x613, 0x61B, 0x1B1)
SAMPLES = 24  # 12 s: longer than the sampler waits before it looks for sources that are missing

# Package 0: cores 0-3 work, cores 4-7 sleep. Package 1 sleeps whole. Siblings are 16 apart.
SLEEPERS = "include skx-rates\nset busy=10 c6=85\nset wake_on_read=%d\nsleep cpus=4-15,20-31\n"


def lazy_inside():
    """Reads of a running daemon, once the first reading of all is over: {register: {cpu: count}}."""
    with Daemon(policy="lazy", interval="500ms") as d:
        d.wait_samples(4)
        fakecpu.reset_ledger()
        d.wait_samples(SAMPLES)
        counts = {}
        for key, row in fakecpu.ledger(d.sampler).items():
            if key[0] == "msr":
                counts.setdefault("%x" % key[2], {})[str(key[1])] = row.count
        return {"counts": counts, "samples": d.samples(), "topology": fakecpu.ledger(d.sampler).get(("file", "topology"), (0, 0))[0], "snapshot": d.json("/api/v1/snapshot"),
                "write_opens": fakecpu.ledger(d.sampler)["write_opens"], "pwrites": fakecpu.ledger(d.sampler)["pwrites"]}


def hotplug_inside():
    """Reads of each CPU's MPERF after another one went offline, and after it came back."""
    with Daemon(policy="lazy", interval="500ms") as d:
        d.wait_samples(4)
        out = []
        for statement in ("offline cpus=2", "online cpus=2"):
            fakecpu.reset_ledger()
            fakecpu.set_(statement)
            d.wait_samples(6)
            out.append({str(key[1]): row.count for key, row in fakecpu.ledger(d.sampler).items() if key[0] == "msr" and key[2] == 0xE7})
        return {"reads": out, "c6": {c["core"]: c.get("c6") for c in d.snapshot_after(1)["cores"] if c["package"] == 0}}


class Lazy(MachineTest):
    def test_hotplug_leaves_sleepers_alone(self):
        """A CPU that leaves or comes is no reason to wake others."""
        r = self.on(SLEEPERS % 0, "hotplug_inside")
        for reads in r["reads"]:
            self.assertEqual({c: n for c, n in reads.items() if 4 <= int(c) < 16 or int(c) >= 20}, {})
            self.assertGreater(reads["0"], 3)
        self.assertAlmostEqual(r["c6"]["1"], 85, delta=2)
        self.assertIsNone(r["c6"]["5"])

    def check(self, wake_on_read):
        r = self.on(SLEEPERS % wake_on_read, "lazy_inside")
        reads = {int(reg, 16): {int(cpu): n for cpu, n in per_cpu.items()} for reg, per_cpu in r["counts"].items()}
        asleep, whole = set(range(4, 8)) | set(range(20, 24)), set(range(8, 16)) | set(range(24, 32))
        awake = set(range(4)) | set(range(16, 20))
        for register in THREAD + CORE:
            # at most: a read of a package's own reader is of the package's registers only
            self.assertEqual({c: n for c, n in reads.get(register, {}).items() if c in asleep | whole}, {}, "register 0x%x" % register)
        for register in PACKAGE:
            self.assertEqual({c: n for c, n in reads.get(register, {}).items() if c in asleep}, {}, "register 0x%x" % register)
        # the ones who work are read, the package that sleeps whole by one CPU a sample
        for cpu in awake:
            self.assertGreater(reads[0xE7].get(cpu, 0), SAMPLES / 2, "cpu %d" % cpu)
        for register in (0x3F9, 0x611, 0x619):
            for package in (awake, whole):
                n = sum(n for c, n in reads[register].items() if c in package)
                self.assertGreater(n, SAMPLES / 2)
                self.assertLessEqual(n, r["samples"] + 1)
        core = {(c["package"], c["core"]): c for c in r["snapshot"]["cores"]}
        self.assertIsNone(core[0, 5].get("c6"))
        self.assertEqual(core[0, 5]["reasons"]["c6"], "asleep")
        self.assertIsNotNone(core[0, 1]["c6"])
        self.assertEqual((r["write_opens"], r["pwrites"]), (0, 0))
        self.assertEqual(r["topology"], 0, "the machine was read anew, though nothing changed")

    def test_sleepers_are_left_alone(self):
        self.check(0)

    def test_sleepers_are_left_alone_though_our_reads_would_wake_them(self):
        """A remote read is an interrupt and an exit of its own on real hardware: it must not feed itself."""
        self.check(1)


def units_inside():
    """Joules a count of each package's DRAM and package register, as the snapshot implies; and its watts."""
    with Daemon(policy="always", interval="2s") as d:
        d.wait_samples(2)
        s = d.snapshot_after(1)
        rows = fakecpu.ledger(d.sampler)
        out = {"expect": {"|".join(k): v for k, v in fakecpu.expect().items()}, "snapshot": s, "registers": {},
               "msr_per_package": {}}
        for key, row in rows.items():
            if key[0] == "msr":
                seconds = (row.last_ns - row.first_ns) / 1e9
                out["registers"].setdefault("%x" % key[2], {})[str(key[1])] = [(row.last - row.first) % 2**32 / seconds if seconds else 0, row.count]
        out["samples"] = d.samples()
        return out


class Units(MachineTest):
    def check_model(self, scenario, ram_joule, package_register=0x611, psys_joule=None):
        r = self.on(scenario, "units_inside")
        package_of = {e["cpu"]: e["package"] for e in r["snapshot"]["cpus"]}
        for p in r["snapshot"]["packages"]:
            entity = "%d/%d" % (p["package"], p.get("die") or 0)
            self.near(p["pkg_watts"], r["expect"]["PkgWatt|package|" + entity], what="PkgWatt " + entity)
            if ram_joule:
                self.near(p["ram_watts"], r["expect"]["RAMWatt|package|" + entity], what="RAMWatt " + entity)
        for register, joule, key in ((0x619, ram_joule, "ram_watts"), (0x64D, psys_joule, "sys_watts")):
            if not joule:
                continue
            for cpu, (rate, count) in r["registers"]["%x" % register].items():
                if count < 3:
                    continue
                owner = r["snapshot"]["system"] if key == "sys_watts" else next(
                    p for p in r["snapshot"]["packages"] if p["package"] == package_of[int(cpu)])
                self.near(owner[key] / rate, joule, 0.02, "joules a count of 0x%x" % register)
        self.once_a_package(r, package_of, package_register)
        return r

    def once_a_package(self, r, package_of, register):
        """Once a sample, and once when the registers were tried."""
        counts = {}
        for cpu, (_, count) in r["registers"]["%x" % register].items():
            counts[package_of[int(cpu)]] = counts.get(package_of[int(cpu)], 0) + count
        self.assertEqual(set(counts), set(package_of.values()))
        for package, count in counts.items():
            self.assertLessEqual(count, r["samples"] + 2, "package %d" % package)

    def test_c04_skylake(self):
        self.check_model("skx-2s", 15.3e-6)

    def test_c04_ice_lake(self):
        self.check_model("icx-2s", 15.3e-6, psys_joule=2.0**-14)

    def test_c04_sapphire_rapids(self):
        self.check_model("spr-2s", 2.0**-14, psys_joule=1.0)

    def test_c09_epyc(self):
        """Registers of AMD: package energy once a package whatever the dies, core energy once a core; totals over both."""
        r = self.check_model("epyc", None, package_register=0xC001029B)
        self.assertNotIn("611", r["registers"])
        cores = r["snapshot"]["cores"]
        self.assertEqual(len(cores), 16)
        for c in cores:
            self.near(c["cor_watts"], 0.75, 0.02, "CorWatt")
        self.assertLessEqual(sum(count for _, count in r["registers"]["c001029a"].values()), 16 * (r["samples"] + 1) + 2)
        self.near(r["snapshot"]["system"]["pkg_watts"], 65.0 + 58.5)


if __name__ == "__main__":
    main()
