#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# meson install under DESTDIR puts what the list says where the list says it, and keeps an administrator's configuration.
# Usage: install.sh LIST BUILD PREFIX. In the list %prefix% stands for the prefix.
set -u
list=$1 build=$2 prefix=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
dest=$work/dest

install() {
        DESTDIR=$dest meson install -C "$build" --no-rebuild >"$work/log" 2>&1 || {
                cat "$work/log"
                exit 1
        }
}

install
(cd "$dest" && find . -not -type d -printf '%m /%P\n') | LC_ALL=C sort -k 2 >"$work/have"
grep -v '^#' "$list" | sed "s,%prefix%,$prefix," | LC_ALL=C sort -k 2 >"$work/want"
diff -u "$work/want" "$work/have" || {
        echo "what is installed (+) is not what $list says (-)"
        exit 1
}

echo "[Sampler]" >"$dest/etc/cstated/cstated.conf"
install
[ "$(cat "$dest/etc/cstated/cstated.conf")" = "[Sampler]" ] || {
        echo "a configuration that was there has been overwritten"
        exit 1
}
