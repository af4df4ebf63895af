# SPDX-License-Identifier: GPL-2.0-or-later
"""C17: conditions that stay are logged once, and no register is ever written."""

from machinebed import Daemon, MachineTest, fakecpu, main, until

SMALL = """model skx
packages 2
cores 1
threads 1
set busy=20 mhz=2500 c6=60 loc=100 C6.time=79.5 C6.usage=50 pkg_watts=40 ram_watts=6
"""


def c17_inside():
    """Three conditions that stay, and then a thousand samples."""
    with Daemon(policy="always", interval="100ms") as d:
        d.wait_samples(3)
        fakecpu.set_("eio reg=0x3fd cpus=1", "eio reg=0x619", "fail energy_uj EIO", "hide cpuidle")
        until(lambda: d.source("cpuidle")["state"] != "ok", "cpuidle to be missed")
        first = d.samples()
        d.wait_samples(first + 1000, 300)
        status = d.json("/api/v1/status")
        ledger = fakecpu.ledger(d.sampler)
        return {"log": d.log(), "samples": d.samples() - first, "sources": status["sources"], "write_opens": ledger["write_opens"],
                "pwrites": ledger["pwrites"], "snapshot": d.json("/api/v1/snapshot")}


class Log(MachineTest):
    def test_c17_a_thousand_samples_with_permanent_errors(self):
        r = self.on(SMALL, "c17_inside", timeout=350)
        states = {s["name"]: s for s in r["sources"]}
        self.assertGreaterEqual(r["samples"], 1000)
        self.assertNotEqual(states["cpuidle"]["state"], "ok")
        self.assertIn("cannot be read", states["msr"]["hint"])
        for p in r["snapshot"]["packages"]:
            self.assertIsNone(p["ram_watts"])
            self.assertEqual(p["reasons"]["ram_watts"], "error")
        self.assertEqual([c["reasons"].get("c6") for c in r["snapshot"]["cores"] if c["c6"] is None], ["error"])
        self.assertLess(len(r["log"].splitlines()), 10, r["log"])
        self.assertGreater(len(r["log"].splitlines()), 0)
        self.assertEqual((r["write_opens"], r["pwrites"]), (0, 0))


if __name__ == "__main__":
    main()
