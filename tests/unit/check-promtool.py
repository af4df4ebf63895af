#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""/metrics is what promtool calls clean: with and without the series of CPUs."""

import json
import shutil
import subprocess
import sys

if not shutil.which("promtool"):
    print("skipped: promtool (package prometheus) is not installed")
    sys.exit(77)
replies = json.loads(subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE).stdout)
texts = [r["body"] for r in replies if r["path"] == "/metrics" and r["status"] == 200]
assert len(texts) == 2
assert 'cstated_rapl_joules_total{package="0",zone="package"}' in texts[0]
assert 'cpu="' not in texts[0] and 'cpu="7"' in texts[1]
for text in texts:
    r = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(r.stdout.decode(), end="")
    if r.returncode != 0 or r.stdout:
        sys.exit(1)
