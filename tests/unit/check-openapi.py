#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds real replies (of dump-replies) against the OpenAPI description. Every route must be described, every
described 2xx reply must have been seen, every body must fit its schema."""

import json
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)


def check_strict(schema, where):
    """Objects with properties say what else they allow, so that a new key is noticed here."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            assert "additionalProperties" in schema, where
        for key, value in schema.items():
            check_strict(value, f"{where}/{key}")
    elif isinstance(schema, list):
        for i, value in enumerate(schema):
            check_strict(value, f"{where}/{i}")


def schema_of(doc, reply):
    path = doc["paths"].get(reply["path"])
    assert path, f"{reply['path']} is not described"
    operation = path.get(reply["method"].lower())
    assert operation, f"{reply['method']} {reply['path']} is not described"
    response = operation["responses"].get(str(reply["status"]))
    assert response, f"{reply['method']} {reply['path']} {reply['status']} is not described"
    content = response["content"].get(reply["type"].split(";")[0])
    assert content, f"{reply['path']}: {reply['type']} is not described"
    return content["schema"]


def main():
    with open(sys.argv[2], encoding="utf-8") as f:
        doc = json.load(f)
    for schema in doc["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    check_strict(doc["components"]["schemas"], "schemas")
    replies = json.loads(subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE).stdout)
    seen, failures = set(), 0
    for reply in replies:
        name = f"{reply['method']} {reply['path']}?{reply['query']} {reply['status']}"
        try:
            schema = dict(schema_of(doc, reply), components=doc["components"])
            body = reply["body"]
            if reply["type"] == "application/json":
                body = json.loads(body, parse_constant=lambda c: sys.exit(f"{name}: {c} is no JSON"))
            jsonschema.Draft202012Validator(schema).validate(body)
            seen.add((reply["path"], reply["method"].lower(), reply["status"]))
        except (AssertionError, jsonschema.ValidationError, ValueError) as e:
            print(f"{name}: {e}")
            failures += 1
    for path, operations in doc["paths"].items():
        for method, operation in operations.items():
            for status in operation["responses"]:
                if status.startswith("2") and (path, method, int(status)) not in seen:
                    print(f"{method} {path}: no {status} reply was seen")
                    failures += 1
    print(f"{len(replies)} replies, {failures} failures")
    return failures > 0


sys.exit(main())
