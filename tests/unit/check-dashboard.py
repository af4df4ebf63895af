#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard's scripts without a browser: their pure functions under node, and what none of them may do.

Usage: check-dashboard.py DIRECTORY CHECKS
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MODULES = ["api", "charts", "format", "heatmap", "now", "series", "timeframe"]
# Text of others must not become HTML, nor text a program; the policy that is sent along forbids inline styles.
FORBIDDEN = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
                       r"|\beval\s*\(|new Function|setAttribute\('style'|https?://|localStorage|document\.cookie")


def check_text(folder):
    failures = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith((".js", ".css", ".html")):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        if "SPDX-License-Identifier: GPL-2.0-or-later" not in text[:120]:
            failures.append(name + ": no SPDX line")
        for line, content in enumerate(text.splitlines(), 1):
            m = FORBIDDEN.search(content)
            if m:
                failures.append("%s:%d: %s" % (name, line, m.group(0)))
            if len(content) > 120 or content != content.rstrip() or "\t" in content:
                failures.append("%s:%d: a long line, a tab or trailing blanks" % (name, line))
            if name.endswith(".html") and re.search(r"\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|<style", content):
                failures.append("%s:%d: inline style or script" % (name, line))
    return failures


def check_pure(folder, checks, node):
    with tempfile.TemporaryDirectory() as work:
        for name in os.listdir(folder):
            if name.endswith(".js"):
                shutil.copy(os.path.join(folder, name), work)
        shutil.copy(os.path.join(folder, "plot-none.js"), os.path.join(work, "plot.js"))
        with open(os.path.join(work, "package.json"), "w", encoding="ascii") as f:
            json.dump({"type": "module"}, f)
        for name in sorted(os.listdir(work)):
            if name.endswith(".js"):
                subprocess.run([node, "--check", os.path.join(work, name)], check=True)
        with open(checks, encoding="utf-8") as f:
            expression = f.read().rstrip().rstrip(";")
        with open(os.path.join(work, "run.js"), "w", encoding="utf-8") as f:
            for m in MODULES:
                f.write("import * as %s from './%s.js';\n" % (m, m))
            f.write("const check =\n%s\nconsole.log(JSON.stringify(await check({%s})));\n"
                    % (expression, ",".join(MODULES)))
        done = subprocess.run([node, os.path.join(work, "run.js")], stdout=subprocess.PIPE, check=True, timeout=60)
        return json.loads(done.stdout)


def main():
    folder, checks = sys.argv[1:]
    failures = check_text(folder)
    node = shutil.which("node") or shutil.which("nodejs")
    if node:
        failures += check_pure(folder, checks, node)
    for f in failures:
        print(f)
    if failures:
        return 1
    if not node:
        print("skipped: nodejs is not installed; only the text of the scripts was checked")
        return 77
    return 0


sys.exit(main())
