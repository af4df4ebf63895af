#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Grafana dashboard: every metric and label in it is one that /metrics has, every expression is PromQL, panels have
ids of their own and do not lie upon each other.

Usage: check-grafana.py DUMP-REPLIES DASHBOARD
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile

ALWAYS = {"instance", "job",  # whoever scrapes adds them
          "die"}  # machines with several dies a package have it
SAMPLE = re.compile(r"^(cstated_[a-z0-9_]+)(?:\{([^}]*)\})?\s", re.M)
NAME = re.compile(r"cstated_[a-z0-9_]+")
SELECTOR = re.compile(r"(cstated_[a-z0-9_]+)\{([^}]*)\}")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
LABEL = re.compile(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"')


def exported(dump):
    """Names and their labels, of the replies a made-up machine gives."""
    replies = json.loads(subprocess.run([dump], check=True, stdout=subprocess.PIPE).stdout)
    labels = {}
    for reply in replies:
        if reply["path"] == "/metrics" and reply["status"] == 200:
            for name in re.findall(r"^# TYPE (cstated_\w+)", reply["body"], re.M):
                labels.setdefault(name, set())
            for name, text in SAMPLE.findall(reply["body"]):
                labels.setdefault(name, set()).update(LABEL.findall(text))
    assert len(labels) > 20, "where are the metrics?"
    return labels


def panels_of(doc):
    for panel in doc["panels"]:
        yield panel
        yield from panel.get("panels", [])


def check_panels(panels):
    failures, ids, cells = [], set(), {}
    for p in panels:
        if p["id"] in ids:
            failures.append("panel id %d is there twice" % p["id"])
        ids.add(p["id"])
        g = p["gridPos"]
        if g["x"] + g["w"] > 24:
            failures.append("%s reaches beyond the grid" % p["title"])
        for cell in ((x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])):
            other = cells.setdefault(cell, p["title"])
            if other != p["title"]:
                failures.append("%s lies upon %s" % (p["title"], other))
                break
        refs = [t["refId"] for t in p.get("targets", [])]
        if len(refs) != len(set(refs)) or (p["type"] != "row" and not refs):
            failures.append("%s: targets without a name of their own, or none" % p["title"])
    return failures


def check_expression(expression, legend, labels):
    failures = ["there is no metric %s" % n for n in NAME.findall(expression) if n not in labels]
    known = set().union(ALWAYS, *(labels.get(n, set()) for n in NAME.findall(expression)))
    for name, text in SELECTOR.findall(expression):
        for label in LABEL.findall(text):
            if label not in labels.get(name, set()) | ALWAYS:
                failures.append("%s has no label %s" % (name, label))
    for text in GROUPING.findall(expression) + LEGEND.findall(legend):
        failures += ["nothing has the label %s" % l for l in re.split(r"[\s,]+", text.strip()) if l and l not in known]
    return failures


def expressions_of(doc):
    return [(p["title"], t["expr"], t["legendFormat"]) for p in panels_of(doc) for t in p.get("targets", [])]


def check_promql(expressions):
    if not shutil.which("promtool"):
        print("promtool (package prometheus) is not installed: syntax is not checked")
        return []
    rules = [{"record": "x:%d" % i, "expr": e.replace("$__rate_interval", "5m").replace("$instance", ".*")}
             for i, (_, e, _) in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as f:
        json.dump({"groups": [{"name": "grafana", "rules": rules}]}, f)  # JSON is YAML
        f.flush()
        r = subprocess.run(["promtool", "check", "rules", f.name], capture_output=True, text=True, check=False)
    return [r.stdout + r.stderr] if r.returncode else []


def main():
    labels = exported(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as f:
        doc = json.load(f)
    expressions = expressions_of(doc)
    failures = check_panels(list(panels_of(doc))) + check_promql(expressions)
    for title, expression, legend in expressions:
        failures += ["%s: %s" % (title, f) for f in check_expression(expression, legend, labels)]
    for variable in doc["templating"]["list"]:
        failures += ["variable %s: there is no metric %s" % (variable["name"], n)
                     for n in NAME.findall(json.dumps(variable)) if n not in labels]
    for f in failures:
        print(f)
    print("%d panels, %d expressions, %d failures" % (len(doc["panels"]), len(expressions), len(failures)))
    return len(failures) > 0


sys.exit(main())
