# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What quickstart and check share: packages and build directories. Source it from the top of the tree.

say() {
        printf '%s\n' "$*" >&2
}

die() {
        say "$0: $*"
        exit 1
}

# The packages of contrib/packages: what a build needs, and what the named sections list besides.
packages_wanted() {
        awk -v wanted=" build $* " '
                /^#/ || !NF { next }
                /:$/ { section = substr($1, 1, length($1) - 1); next }
                !section || index(wanted, " " section " ") { print $1 }' contrib/packages
}

packages_missing() {
        local p
        while read -r p; do
                [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s\n' "$p"
        done < <(packages_wanted "$@")
}

# Installs what is missing with apt, and nothing when nothing is.
install_packages() {
        local missing as_root=()
        command -v dpkg-query >/dev/null || {
                say "no dpkg here: install what contrib/packages lists by your own means"
                return 0
        }
        mapfile -t missing < <(packages_missing "$@")
        [ ${#missing[@]} -gt 0 ] || return 0
        if [ "$(id -u)" -ne 0 ]; then
                command -v sudo >/dev/null || die "needs root or sudo to install: ${missing[*]}"
                as_root=(sudo)
        fi
        say "installing with apt: ${missing[*]}"
        "${as_root[@]}" apt-get update -qq
        # prometheus must not start a server behind the administrator's back
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
}

# configure DIR [MESON OPTION...]: sets up or refreshes a build directory.
configure() {
        local dir=$1
        shift
        if [ -e "$dir/build.ninja" ]; then
                meson configure "$dir" "$@" >/dev/null 2>&1 && return 0
                rm -rf "$dir"
        fi
        meson setup "$dir" "$@" >"$dir.log" 2>&1 || {
                cat "$dir.log" >&2
                die "meson could not configure $dir"
        }
        mv "$dir.log" "$dir/setup.log"
}

# compile DIR [TARGET...]
compile() {
        local dir=$1
        shift
        ninja -C "$dir" "$@" >"$dir/compile.log" 2>&1 || {
                grep -E 'error|warning|FAILED' "$dir/compile.log" | head -40 >&2
                die "the build in $dir failed; the whole output is in $dir/compile.log"
        }
}
