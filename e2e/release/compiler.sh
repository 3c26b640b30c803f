#!/bin/sh
# Installs the Debian packages that a release for arm64 is compiled and tried with, as
# root or with sudo. Exits with 75 where they cannot be had.
set -eu

packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
if command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 && command -v qemu-aarch64-static >/dev/null 2>&1; then
	exit 0
fi
sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo -n"
# shellcheck disable=SC2086 # a list of words
if ! { $sudo apt-get update -q && $sudo apt-get install -q -y --no-install-recommends $packages; } >/dev/null; then
	echo "release: these Debian packages are missing and cannot be installed: $packages" >&2
	exit 75
fi
