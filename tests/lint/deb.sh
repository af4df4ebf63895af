#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the Debian package and compares what is in it with a list. Usage: deb.sh LIST TOP
set -u
list=$1 top=$2
for tool in dpkg-deb dpkg-shlibdeps meson scdoc; do
        command -v $tool >/dev/null || {
                echo "$tool is not installed"
                exit 77
        }
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
bad() {
        echo "$*"
        status=1
}

deb=$("$top/contrib/build-deb" --no-install "$work") || exit 1
dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print $1, $2, substr($6, 2) }' | LC_ALL=C sort -k 3 >"$work/have"
grep -v '^#' "$list" | LC_ALL=C sort -k 3 >"$work/want"
diff -u "$work/want" "$work/have" || bad "what the package holds (+) is not what $list says (-)"

[ "$(dpkg-deb -I "$deb" conffiles)" = /etc/cstated/cstated.conf ] || bad "the configuration is no conffile"
dpkg-deb -I "$deb" control >"$work/control"
for library in libc6 libmicrohttpd12 libsqlite3-0 libsystemd0; do
        grep -q "^Depends:.*$library" "$work/control" || bad "the package does not depend on $library"
done
grep -E '@[A-Z]+@' "$work/control" && bad "a placeholder is left in the control file"
mkdir "$work/root"
dpkg-deb -x "$deb" "$work/root"
[ "$("$work/root/usr/sbin/cstated" --version)" = "cstated $(dpkg-deb -f "$deb" Version)" ] || bad "the daemon is not the package's version"
grep -q '^ExecStart=/usr/sbin/cstated' "$work/root/lib/systemd/system/cstated.service" || bad "the unit starts something else"
(cd "$work/root" && dpkg-deb -I "$deb" md5sums | md5sum -c --quiet) || bad "md5sums are wrong"
for script in postinst prerm postrm; do
        dpkg-deb -I "$deb" $script | sh -n || bad "$script is no shell script"
done
exit $status
