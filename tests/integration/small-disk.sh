#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a program with $CSTATED_SMALL_DISK, a tmpfs of 8 MB in a mount namespace of its own.
# usage: small-disk.sh PROGRAM
[ "$(id -u)" = 0 ] && how=-m || how=-rm
if ! unshare "$how" true 2>/dev/null; then
        echo "no mount namespace can be had"
        exit 77
fi
# shellcheck disable=SC2016 # the inner shell's own
exec unshare "$how" sh -c '
        CSTATED_SMALL_DISK=$(mktemp -d) || exit 1
        export CSTATED_SMALL_DISK
        mount -t tmpfs -o size=8m tmpfs "$CSTATED_SMALL_DISK" || exit 1
        "$1"
        status=$?
        umount -l "$CSTATED_SMALL_DISK"
        rmdir "$CSTATED_SMALL_DISK"
        exit $status' sh "$1"
