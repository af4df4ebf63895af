# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon on odd machines, and on counters that wrap and restart (cases by their ids)."""

import time

from machinebed import Daemon, MachineTest, fakecpu, main

SMALL = """model skx
packages 2
cores 2
threads 1
set busy=20 mhz=2500 c6=60 pc6=30 loc=100 C6.time=79.5 C6.usage=50
set packages=0 pkg_watts=40 ram_watts=6
set packages=1 pkg_watts=100 ram_watts=3
"""
ONE = """model skx
packages 1
cores 1
threads 1
set busy=20 mhz=2500 c6=60 pc6=30 loc=100 C6.time=79.5 C6.usage=50
"""
QUERY = "/api/v1/query?start=-1m&format=rows"


def wraps_inside(sources, *statements):
    """Watts of each package and interval while counters wrap."""
    with Daemon(policy="always", interval="500ms", sources=sources) as d:
        d.wait_samples(2)
        fakecpu.set_(*statements)
        time.sleep(4)
        now = fakecpu.counters()
        return {"rows": d.json(QUERY + "&metric=pkg_watts,ram_watts&agg=mean")["rows"],
                "counters": {"/".join(map(str, k)) if isinstance(k, tuple) else k: v for k, v in now.items()}}


def msr_wraps_inside():
    return wraps_inside("-idletrace,-perf", "wrap pkg_watts in=1.6s packages=0", "wrap ram_watts in=2.2s")


def zone_wraps_inside():
    return wraps_inside("-idletrace,-perf,-msr", "wrap pkg_watts in=1.6s packages=0", "wrap ram_watts in=2.2s")


def resets_inside():
    """Everything begins anew at 0: no interval shows more than there can be."""
    with Daemon(policy="always", interval="500ms") as d:
        d.wait_samples(4)
        fakecpu.set_("reset all")
        time.sleep(3)
        metrics = "pkg_watts,ram_watts,busy,bzy_mhz,c6,pc6,idle_time,irq,smi,idle_usage"
        return d.json(QUERY + "&metric=" + metrics + "&agg=mean")["rows"]


def zones_inside():
    with Daemon(interval="1s", sources="cpuidle,irq,stat,powercap") as d:
        d.wait_samples(2)
        return d.snapshot_after(1)


def vm_inside():
    with Daemon(interval="1s") as d:
        d.wait_samples(3)
        return {"snapshot": d.snapshot_after(1), "sources": d.json("/api/v1/status")["sources"], "health": d.json("/api/v1/status")["health"],
                "expect": {"|".join(k): v for k, v in fakecpu.expect().items()}, "table": d.ctl("snapshot").stdout.decode()}


def gaps_inside():
    with Daemon(interval="500ms") as d:
        d.wait_samples(4)
        d.snapshot_after(1)
        return {"snapshot": d.json("/api/v1/snapshot"), "one": d.json(QUERY + "&metric=busy&cpu=153")["rows"],
                "list": d.json(QUERY + "&metric=busy&cpu=9-17,154&points=1")["rows"],
                "table": d.ctl("snapshot", "--format=tsv").stdout.decode()}


def hybrid_inside():
    with Daemon(policy="always", interval="1s") as d:
        d.wait_samples(3)
        return {"snapshot": d.snapshot_after(1), "expect": {"|".join(k): v for k, v in fakecpu.expect().items()}}


def one_cpu_inside():
    with Daemon(interval="500ms") as d:
        d.snapshot_after(1)
        return {name: d.ctl(*args).stdout.decode().splitlines()
                for name, args in (("all", ["snapshot"]), ("summary", ["snapshot", "-S"]), ("two", ["snapshot", "-S", "-n", "2"]))}


class Counters(MachineTest):
    def check_wraps(self, r):
        want = {(0, "pkg_watts"): 40, (1, "pkg_watts"): 100, (0, "ram_watts"): 6, (1, "ram_watts"): 3}
        seen = dict.fromkeys(want, 0)
        for row in r["rows"]:
            key = row["package"], row["metric"]
            if row["mean"] is None:
                continue
            self.near(row["mean"], want[key], 0.15, "%s at %d" % (key, row["time"]))
            seen[key] += 1
        for key, n in seen.items():
            self.assertGreaterEqual(n, 6, key)
            self.assertGreaterEqual(n, max(seen.values()) - 1, key)  # nothing is lost to the wrap

    def test_c01_registers_wrap(self):
        self.check_wraps(self.on(SMALL, "msr_wraps_inside"))

    def test_c01_zones_wrap(self):
        """energy_uj at its own range, each zone apart."""
        self.check_wraps(self.on(SMALL, "zone_wraps_inside"))

    def test_c03_counters_restart(self):
        rows = self.on(SMALL + "set smi=3\n", "resets_inside")
        most = {"pkg_watts": 120, "ram_watts": 10, "busy": 30, "bzy_mhz": 3000, "c6": 75, "pc6": 45, "idle_time": 100.5, "irq": 200,
                "smi": 20, "idle_usage": 100}
        self.assertEqual({row["metric"] for row in rows}, set(most))
        for row in rows:
            if row["mean"] is not None:
                self.assertGreaterEqual(row["mean"], 0, row)
                self.assertLessEqual(row["mean"], most[row["metric"]], row)


class Machines(MachineTest):
    def test_c05_c06_zones_are_not_added_up(self):
        """package-0 twice by MSR and once by MMIO, dies, two digits, psys, doubles: the total is the one package's."""
        s = self.on("odd-zones", "zones_inside")
        self.assertEqual(len(s["packages"]), 1)
        self.near(s["packages"][0]["pkg_watts"], 3.93, 0.03, "PkgWatt")
        self.near(s["packages"][0]["cor_watts"], 0.84, 0.03, "CorWatt")
        self.near(s["packages"][0]["ram_watts"], 1.5, 0.03, "RAMWatt")
        self.near(s["system"]["pkg_watts"], 3.93, 0.03, "PkgWatt of all")
        self.near(s["system"]["sys_watts"], 9.61, 0.03, "SysWatt")
        self.near(s["system"]["node_watts"], 3.93 + 1.5, 0.03, "node")

    def test_c08_a_virtual_machine(self):
        r = self.on("vm", "vm_inside")
        for source in r["sources"]:
            if source["name"] in ("msr", "cpuidle", "powercap"):
                self.assertEqual(source["state"], "absent", source)
                self.assertTrue(source["hint"], source)
        self.assertEqual(r["health"], "ok")  # what a machine lacks is no fault
        self.assertEqual(len(r["snapshot"]["cpus"]), 4)
        for c in r["snapshot"]["cpus"]:
            # by /proc/stat, in steps of 10 ms
            self.assertLessEqual(abs(c["busy"] - 12.0), 3.0, c)
            self.assertGreater(c["irq"], 50)
            for metric in ("avg_mhz", "bzy_mhz", "c1", "smi"):
                self.assertIsNone(c.get(metric), metric)
            self.assertIsNone(c.get("wakeups", {}).get("break"))
        for c in r["snapshot"]["cores"]:
            for metric in ("c3", "c6", "c7", "core_temp"):
                self.assertIsNone(c.get(metric), metric)
        for p in [*r["snapshot"]["packages"], r["snapshot"]["system"]]:
            for metric in ("pc2", "pc3", "pc6", "pc7", "pkg_watts", "ram_watts", "cor_watts", "node_watts", "sys_watts", "pkg_temp"):
                self.assertIsNone(p.get(metric), metric)
        header = r["table"].splitlines()[0].split("\t")
        for column in ("PkgWatt", "RAMWatt", "CPU%c6", "Pkg%pc6", "C6", "CoreTmp", "SMI"):
            self.assertNotIn(column, header)

    def test_c14_gaps_in_cpu_numbers(self):
        r = self.on("gaps", "gaps_inside", "--set", "cpus=1-2,9-10,17-18,153-154")
        ids = [1, 2, 9, 10, 17, 18, 153, 154]
        self.assertEqual([c["cpu"] for c in r["snapshot"]["cpus"]], ids)
        self.assertTrue(r["one"])
        self.assertEqual({row["cpu"] for row in r["one"]}, {153})
        self.assertEqual(sorted({row["cpu"] for row in r["list"]}), [9, 10, 17, 154])
        header, *rows = (line.split("\t") for line in r["table"].splitlines())
        self.assertEqual([row[header.index("CPU")] for row in rows], ["-"] + [str(i) for i in ids])

    def test_one_cpu(self):
        """The only CPU is its own summary: printed once, and where the summary alone is asked for."""
        r = self.on(ONE, "one_cpu_inside")
        self.assertEqual([len(r["all"]), len(r["summary"]), len(r["two"])], [2, 2, 3], r)
        for lines in r.values():
            self.assertIn("Busy%", lines[0].split("\t"))
            for row in lines[1:]:
                self.near(float(row.split("\t")[lines[0].split("\t").index("Busy%")]), 20)

    def test_c11_core_types_have_their_own_states(self):
        r = self.on("hybrid", "hybrid_inside")
        for c in r["snapshot"]["cpus"]:
            states = ["POLL", "C1E", "C6", "C8", "C10"] if c["cpu"] < 12 else ["POLL", "C1E", "C6"]
            self.assertEqual([n for n, s in c["idle"].items() if s.get("time") is not None], states, c["cpu"])
            total = c["busy"] + sum(s["time"] for s in c["idle"].values() if s.get("time") is not None)
            self.assertLessEqual(total, 103, c)  # two clocks on a busy machine; 445 % was the fault
            self.near(c["busy"], r["expect"]["Busy%%|cpu|%d" % c["cpu"]], 0.1, "Busy%% of %d" % c["cpu"])


if __name__ == "__main__":
    main()
