#!/bin/sh
# Builds the collector of an older version of this repository, once, into
# .cache/older, and prints the folder with its source and bin/otelcol-ml.
#
# The version is a commit until there is a release. It is the last one before the
# tests of upgrades, and has every kind of state that they know.
set -eu

version=28e18bccb5ff2296d8fba620e845b3642a3840c9

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
out=$root/.cache/older/$version
if [ -x "$out/bin/otelcol-ml" ]; then
	echo "$out"
	exit
fi
if ! git -C "$root" cat-file -e "$version^{commit}" 2>/dev/null; then
	echo "upgrade: the history has no commit $version. In a shallow clone, run: git fetch --unshallow" >&2
	exit 1
fi
echo "upgrade: building the collector of $version, once: as long as make build" >&2
rm -rf "$out"
mkdir -p "$out"
git -C "$root" archive "$version" | tar -x -C "$out"
make -C "$out" collector >&2
echo "$out"
