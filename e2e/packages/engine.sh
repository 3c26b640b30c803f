#!/usr/bin/env bash
# Has a container engine ready for the image's tests: where none works, it installs
# what docker/engine.sh names, if this runs as root. It ends with 75 where there is
# none then, and says why.
set -uo pipefail
cd "$(dirname "$0")/../.."

works() { (. docker/engine.sh) >/dev/null 2>&1; }

works && exit 0
packages=$(sed -n 's/.*apt-get install --no-install-recommends \(podman .*\)/\1/p' docker/engine.sh)
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "image: no container engine works, and to install one takes root and apt-get: $packages" >&2
	exit 75
fi
mkdir -p .cache
echo "image: installing $packages"
# shellcheck disable=SC2086 # one word a package
(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages) >.cache/engine.log 2>&1 </dev/null ||
	tail -n 20 .cache/engine.log >&2
works && exit 0
echo "image: no container engine works after that" >&2
exit 75
