#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# --help: on stdout, exit 0, at most 80 columns, no tab; --version says the version; a wrong option exits 2 on stderr.
# Usage: help.sh VERSION PROGRAM...
set -u
version=$1
shift
status=0
bad() {
        echo "$*"
        status=1
}
check_help() {
        local text
        text=$("$@" --help 2>/dev/null) || bad "$*: --help exits $?"
        [ -n "$text" ] || bad "$*: --help prints nothing on stdout"
        [ -z "$("$@" --help 2>&1 >/dev/null)" ] || bad "$*: --help writes to stderr"
        local long
        long=$(awk 'length > 80' <<<"$text")
        [ -z "$long" ] || bad "$*: --help is wider than 80 columns: $long"
        case $text in *$'\t'*) bad "$*: --help holds a tab" ;; esac
}
for program; do
        check_help "$program"
        "$program" --version | grep -qF "$version" || bad "$program: --version does not say $version"
        "$program" --no-such-option >/dev/null 2>&1
        [ $? -eq 2 ] || bad "$program: a wrong option does not exit 2"
        [ -z "$("$program" --no-such-option 2>/dev/null)" ] || bad "$program: a wrong option writes to stdout"
        case $program in
        *cstatectl)
                for verb in $("$program" --help | awk '/^  [a-z]/ { print $1 }'); do
                        check_help "$program" "$verb"
                done
                ;;
        esac
done
exit $status
