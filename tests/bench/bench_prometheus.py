#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes a value of Debian's prometheus for the idle hour of bench-store, and ours for the same hour.

Usage: bench_prometheus.py BENCH_STORE [CPUS]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

bench, cpus = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
promtool = shutil.which("promtool")
if not promtool:
    print("promtool is not installed (package prometheus)")
    sys.exit(77)
top = tempfile.mkdtemp(prefix="cstated-bench-", dir="/var/tmp")
try:
    text, blocks = os.path.join(top, "text"), os.path.join(top, "blocks")
    with open(text, "wb") as f:
        subprocess.run([bench, "--openmetrics", str(cpus)], stdout=f, check=True)
    subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", text, blocks], stdout=subprocess.DEVNULL, check=True)
    chunks = whole = 0
    for folder, _, names in os.walk(blocks):
        for name in names:
            size = os.path.getsize(os.path.join(folder, name))
            whole += size
            chunks += size if os.path.basename(folder) == "chunks" else 0
    values = cpus * 20 * 3600
    ours = subprocess.run([bench, str(cpus)], stdout=subprocess.PIPE, check=True, text=True).stdout
    raw = float(re.search(r"idle.*?raw bytes a value +([0-9.]+)", ours, re.S).group(1))
    print("%d CPUs, idle, one hour at 1 Hz, bytes a value: ours %.2f, prometheus %.2f (chunks %.2f): x %.1f"
          % (cpus, raw, whole / values, chunks / values, whole / values / raw))
finally:
    shutil.rmtree(top)
