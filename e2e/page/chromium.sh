#!/usr/bin/env bash
# Installs Debian's Chromium where none is installed and this runs as root or may
# use sudo without a password. It ends with 75 where there is none then, and says
# why.
set -uo pipefail
cd "$(dirname "$0")/../.."

works() { chromium --version >/dev/null 2>&1; }

works && exit 0
# Chromium depends on no font, and draws boxes without one.
packages="chromium fonts-dejavu-core"
become=()
if [ "$(id -u)" -ne 0 ]; then
	become=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${become[@]}" true 2>/dev/null; then
	echo "page: no Chromium, and to install it takes apt-get and root: $packages" >&2
	exit 75
fi
mkdir -p .cache
echo "page: installing $packages: about 130 MB"
# shellcheck disable=SC2086 # one word a package
("${become[@]}" apt-get update && "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages) >.cache/chromium.log 2>&1 </dev/null ||
	tail -n 20 .cache/chromium.log >&2
works && exit 0
echo "page: Chromium does not work after that" >&2
exit 75
