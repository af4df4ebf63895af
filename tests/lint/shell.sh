#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Checks every shell script in the tree. Usage: shell.sh TOP
set -u
cd "$1" || exit 1
command -v shellcheck >/dev/null || {
        echo "shellcheck is not installed"
        exit 77
}
mapfile -t scripts < <(grep -rlIE '^#!.*\b(ba)?sh\b' --exclude-dir='build*' --exclude-dir=.git . | sort)
[ ${#scripts[@]} -gt 0 ] || {
        echo "no script found: the search is broken"
        exit 1
}
shellcheck -x -P contrib -e SC1091 contrib/lib.sh "${scripts[@]}"
