#!/usr/bin/env bash
# Makes the page that the dashboards are drawn on, .cache/grafana/page, from the packages
# that grafana/page/package-lock.json pins, and installs Node.js where there is none and
# this runs as root or may use sudo without a password. It ends with 75 where there is no
# Node.js then or no package registry can be reached, and says why.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages="nodejs npm"

works() { command -v npm >/dev/null && node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null; }

from=e2e/grafana/page
to=.cache/grafana
mkdir -p "$to"
wanted=$(cat "$from"/*.* | sha256sum)
if [ -f "$to/stamp" ] && [ "$(cat "$to/stamp")" = "$wanted" ]; then
	exit 0
fi
if ! works; then
	become=()
	if [ "$(id -u)" -ne 0 ]; then
		become=(sudo -n)
	fi
	echo "dashboards: installing $packages"
	# shellcheck disable=SC2086 # one word a package
	if ! { command -v apt-get && "${become[@]}" apt-get update && "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages; } >"$to/node.log" 2>&1 </dev/null || ! works; then
		echo "dashboards: there is no Node.js 18 or newer with npm, and to install it takes apt-get and root" >&2
		exit 75
	fi
fi
echo "dashboards: installing Grafana's packages, once: 670 MB, and making a page of them: 2 minutes"
rm -rf "$to/stamp" "$to/page" "$to/build"
cp -r "$from" "$to/build"
# No package's own program runs at its installation.
if ! (cd "$to/build" && npm ci --ignore-scripts --no-audit --no-fund) >"$to/npm.log" 2>&1; then
	tail -n 20 "$to/npm.log" >&2
	grep -qE 'ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET' "$to/npm.log" || exit 1
	echo "dashboards: no package registry can be reached" >&2
	exit 75
fi
(cd "$to/build" && node bundle.mjs ../page)
rm -rf "$to/build"
echo "$wanted" >"$to/stamp"
