#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots Debian under qemu (TCG: no KVM is needed), installs the package, and lets tests/boot/guest try it.

Usage: test_boot.py TOP WORK. The image is kept in WORK for the next run; what a run writes to it is thrown away.
"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TOP, WORK = map(os.path.abspath, sys.argv[1:3])
HERE = os.path.join(TOP, "tests", "boot")
PATIENCE = 900  # seconds, for both boots
# Debian's kernel names clflush_monitor on the bugs line of this one.
CPU = "Westmere,model=47,stepping=2,+monitor"


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


def check_tools():
    if os.uname().machine != "x86_64":
        skip("this test is for x86_64")
    for tool in ("qemu-system-x86_64", "debootstrap", "mke2fs", "dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(tool):
            skip("%s is not installed: contrib/check boot does" % tool)
    if os.geteuid() != 0:
        skip("debootstrap needs root")


def build_package():
    out = subprocess.run([os.path.join(TOP, "contrib", "build-deb"), "--no-install", WORK], stdout=subprocess.PIPE, text=True, check=True)
    return out.stdout.split()[-1]


def dependencies(deb):
    text = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({d.split("|")[0].split("(")[0].strip() for d in text.split(",")})


def make_image(packages):
    """Anew only where the recipe or the packages are others than last time."""
    script = os.path.join(HERE, "image")
    with open(script, "rb") as f:
        recipe = hashlib.sha256(f.read() + " ".join(packages).encode()).hexdigest()
    stamp = os.path.join(WORK, "recipe")
    parts = [os.path.join(WORK, name) for name in ("recipe", "root.img", "vmlinuz", "initrd")]
    if all(os.path.exists(p) for p in parts) and open(stamp, encoding="ascii").read() == recipe:
        return "kept"
    began = time.monotonic()
    if os.path.exists(stamp):
        os.unlink(stamp)
    p = subprocess.run([script, WORK, *packages], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode != 0:
        skip("no image can be made: %s" % (p.stdout.strip().splitlines() or ["no reason given"])[-1])
    with open(stamp, "w", encoding="ascii") as f:
        f.write(recipe)
    return "made in %d s" % (time.monotonic() - began)


def read(name):
    try:
        with open(os.path.join(WORK, name), encoding="utf-8", errors="replace") as f:
            return f.read().replace("\r", "")
    except FileNotFoundError:
        return ""


def boot(deb):
    payload = os.path.join(WORK, "payload.tar")
    staged = os.path.join(WORK, "payload")
    shutil.rmtree(staged, ignore_errors=True)
    os.mkdir(staged)
    shutil.copy(os.path.join(HERE, "guest"), staged)
    shutil.copy(deb, os.path.join(staged, "cstated.deb"))
    subprocess.run(["tar", "-C", staged, "--owner=0", "--group=0", "-cf", payload, "guest", "cstated.deb"], check=True)
    shutil.rmtree(staged)
    for name in ("console", "outcome"):
        open(os.path.join(WORK, name), "w", encoding="ascii").close()
    at = lambda name: os.path.join(WORK, name)
    qemu = subprocess.Popen([
        "qemu-system-x86_64", "-accel", "tcg", "-cpu", CPU, "-smp", "2", "-m", "1024", "-nodefaults", "-display", "none",
        "-kernel", at("vmlinuz"), "-initrd", at("initrd"), "-append", "root=/dev/vda rw console=ttyS0 loglevel=4",
        "-drive", "file=%s,format=raw,if=virtio,snapshot=on" % at("root.img"),
        "-drive", "file=%s,format=raw,if=virtio,readonly=on" % payload,
        "-device", "virtio-rng-pci", "-serial", "file:" + at("console"), "-serial", "file:" + at("outcome"),
    ], stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": WORK})
    try:
        qemu.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        print("the machine is not done after %d s" % PATIENCE)
    finally:
        qemu.kill()
        qemu.wait()
        os.unlink(payload)


def main():
    check_tools()
    os.makedirs(WORK, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    deb = build_package()
    print("image:", make_image(dependencies(deb)), flush=True)
    began = time.monotonic()
    boot(deb)
    outcome = read("outcome")
    print(outcome, end="")
    print("# two boots in %d s" % (time.monotonic() - began))
    plan = re.search(r"(?m)^1\.\.(\d+)$", outcome)
    good = re.findall(r"(?m)^ok (\d+) ", outcome)
    if not plan:
        print("the machine did not come to an end; its console (%s) ended with:" % os.path.join(WORK, "console"))
        print("\n".join(read("console").splitlines()[-30:]))
    return 0 if plan and len(good) == int(plan.group(1)) and "not ok" not in outcome else 1


if __name__ == "__main__":
    sys.exit(main())
