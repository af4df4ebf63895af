#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a C file with the dashboard's files in it. Usage: embed.py OUTPUT NAME=FILE...

index.html becomes "/", the others "/dashboard/NAME". The ETag is a hash of the bytes, so that a browser keeps what a
new version did not change, and two builds of the same tree are the same.
"""

import hashlib
import sys

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
PER_LINE = 24


def array(name, data):
    lines = [",".join(map(str, data[i:i + PER_LINE])) for i in range(0, len(data), PER_LINE)]
    return "static const unsigned char %s[] = {\n%s\n};\n" % (name, ",\n".join(lines))


def main():
    output, arrays, rows = sys.argv[1], [], []
    for i, pair in enumerate(sys.argv[2:]):
        name, path = pair.split("=", 1)
        with open(path, "rb") as f:
            data = f.read()
        etag = hashlib.sha256(data).hexdigest()[:16]
        url = "/" if name == "index.html" else "/dashboard/" + name
        arrays.append(array("file_%d" % i, data))
        rows.append('        { "%s", "%s", "\\"%s\\"", file_%d, sizeof(file_%d) },\n'
                    % (url, TYPES[name.rsplit(".", 1)[1]], etag, i, i))
    with open(output, "w", encoding="ascii") as f:
        f.write('#include "http/dashboard-private.h"\n\n%s\n' % "".join(arrays))
        f.write("const DashboardFile dashboard_embedded[] = {\n%s};\n" % "".join(rows))
        f.write("const size_t dashboard_n_embedded = %d;\n" % len(rows))


main()
