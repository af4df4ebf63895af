#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real CPUID path on CPUs we do not have: cstatectl --local cpu under qemu-user.

Usage: cpu-qemu.py CSTATECTL identity|bugs

identity: models are recognised and named. bugs: with a /proc/cpuinfo of ours bound over the real one, the same CPU is
mitigated, unmitigated or unknown. Exit 77 with the reason where qemu-user or a mount namespace cannot be had.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
E7_4807 = "Westmere,model=47,stepping=2,+monitor,-hypervisor,model-id=Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz"

CSTATECTL = os.path.abspath(sys.argv[1])
SUITE = sys.argv[2]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def namespace(cpuinfo=None):
    """Words before a command that give it a mount namespace: no CPUID device, and /proc/cpuinfo is that file."""
    script = "! [ -d /dev/cpu ] || mount -t tmpfs none /dev/cpu || exit; "
    if cpuinfo:
        script += f'mount --bind "{cpuinfo}" /proc/cpuinfo || exit; '
    return ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script + 'exec "$@"', "sh"]


def cstatectl(cpu, *arguments, wrapper=()):
    """Runs cstatectl on that CPU; its stdout."""
    if not wrapper and os.access("/dev/cpu/0/cpuid", os.R_OK):
        wrapper = namespace()  # the device would show the real CPU
    done = subprocess.run([*wrapper, QEMU, "-cpu", cpu, CSTATECTL, "--local", "cpu", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{cpu}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def cpu_of(text):
    cpus = json.loads(text)["cpus"]
    assert len(cpus) == 1, cpus
    return cpus[0]


def status_of(cpu, erratum):
    return next(e["status"] for e in cpu["errata"] if e["id"] == erratum)


class Identity(unittest.TestCase):
    TABLE = [
        (E7_4807, 6, 47, 2, "Westmere-EX", "clflush_monitor"),
        ("Nehalem,model=46,stepping=6,+monitor,-hypervisor", 6, 46, 6, "Nehalem-EX", "clflush_monitor"),
        ("core2duo,model=29,stepping=1,-hypervisor", 6, 29, 1, "Dunnington (Penryn)", "clflush_monitor"),
        ("Icelake-Server,model=106,stepping=6,-hypervisor", 6, 106, 6, "Ice Lake-X", "icx143"),
        ("Skylake-Server,model=143,stepping=8,-hypervisor", 6, 143, 8, "Sapphire Rapids-X", None),
        ("Nehalem,model=92,+monitor,-hypervisor", 6, 92, 3, "Goldmont", "monitor"),
        ("Westmere,model=255,-hypervisor", 6, 255, 1, None, None),
        ("Skylake-Server,family=19,model=1,stepping=0,-hypervisor", 19, 1, 0, "Diamond Rapids-X", None),
    ]

    def test_models(self):
        for name, family, model, stepping, uarch, erratum in self.TABLE:
            with self.subTest(name):
                cpu = cpu_of(cstatectl(name, "--json"))
                self.assertEqual(cpu["vendor"], "GenuineIntel")
                self.assertEqual((cpu["family"], cpu["model"], cpu["stepping"]), (family, model, stepping))
                self.assertEqual(cpu["uarch"], uarch)
                self.assertIs(cpu["hypervisor"], False)
                for e in cpu["errata"]:
                    if e["id"] == erratum:
                        self.assertNotEqual(e["status"], "not-affected")
                    else:
                        self.assertEqual(e["status"], "not-affected", e)

    def test_person(self):
        text = cstatectl(E7_4807)
        self.assertIn("Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz\n", text)
        self.assertIn("Westmere-EX, GenuineIntel family 6 model 47 (0x2f) stepping 2", text)
        self.assertIn("erratum clflush_monitor: ", text)

    def test_hypervisor(self):
        cpu = cpu_of(cstatectl("Nehalem,model=46,stepping=6", "--json"))
        self.assertIs(cpu["hypervisor"], True)
        self.assertEqual(cpu["hypervisor_vendor"], "TCGTCGTCGTCG")
        self.assertNotEqual(status_of(cpu, "clflush_monitor"), "not-affected")


class Bugs(unittest.TestCase):
    """What the kernel says of itself decides between the three."""
    HEAD = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu monitor\n"

    def status(self, tail, cpu=E7_4807, erratum="clflush_monitor"):
        with tempfile.NamedTemporaryFile("w", suffix=".cpuinfo") as f:
            f.write(self.HEAD + tail + "power management:\n\n")
            f.flush()
            return status_of(cpu_of(cstatectl(cpu, "--json", wrapper=namespace(f.name))), erratum)

    def test_mitigated(self):
        self.assertEqual(self.status("bugs\t\t: cpu_meltdown clflush_monitor\n"), "mitigated")

    def test_unmitigated(self):
        self.assertEqual(self.status("bugs\t\t: cpu_meltdown spectre_v1\n"), "unmitigated")
        self.assertEqual(self.status("bugs\t\t:\n"), "unmitigated")

    def test_unknown(self):
        self.assertEqual(self.status(""), "unknown")

    def test_monitor_flag_is_no_bug(self):
        goldmont = "Nehalem,model=92,+monitor,-hypervisor"
        self.assertEqual(self.status("bugs\t\t: clflush_monitor\n", goldmont, "monitor"), "unmitigated")
        self.assertEqual(self.status("bugs\t\t: monitor\n", goldmont, "monitor"), "mitigated")


def main():
    if not QEMU:
        skip("qemu-x86_64 is not installed (package qemu-user)")
    if SUITE == "bugs" or os.access("/dev/cpu/0/cpuid", os.R_OK):
        probe = subprocess.run([*namespace("/dev/null"), "true"], stderr=subprocess.PIPE, text=True)
        if probe.returncode != 0:
            skip(f"no private mount namespace: {probe.stderr.strip()}")
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(Identity if SUITE == "identity" else Bugs)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful())


main()
