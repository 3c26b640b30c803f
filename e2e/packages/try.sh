#!/usr/bin/env bash
# Tries every list of packages that the repository names, each in a Debian that
# has nothing else: installs them without recommended packages and does what they
# are named for. The lists are read from where they stand.
#
#   e2e/packages/try.sh [LIST…]     cluster, engine, build, examples, grafana, image, kafka,
#                                   page, release, servers (all)
#
# It needs root and debootstrap, which it installs. Without them it says so and
# ends with 0, or with CI=true with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=e2e/packages/root.sh
. e2e/packages/root.sh

# inside ROOT COMMAND… runs a command in a root, with mounts and processes of its
# own that end with it. The machine's network, its Go and Go's caches are there.
inside() {
	local root=$1
	shift
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount --pid --fork --kill-child bash -euc '
		root=$1 repository=$2 goroot=$3 modcache=$4 gocache=$5
		shift 5
		# Programs in it look for a mount at their root.
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/run"
		for folder in "$repository" "$goroot" "$modcache" "$gocache"; do
			mkdir -p "$root$folder"
			mount --bind "$folder" "$root$folder"
		done
		cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
		exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive CGO_ENABLED=1 \
			PATH="$goroot/bin:/usr/sbin:/usr/bin:/sbin:/bin" GOTOOLCHAIN=local GOFLAGS=-buildvcs=false \
			GOMODCACHE="$modcache" GOCACHE="$gocache" GOPROXY="${GOPROXY:-}" \
			http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" REPOSITORY="$repository" "$@"
	' inside "$root" "$PWD" "$(go env GOROOT)" "$(go env GOMODCACHE)" "$(go env GOCACHE)" "$@"
}

# try NAME PACKAGES CHECK [FILE] installs packages, separated by spaces, in a new
# root and runs a check there, a script of bash that finds the file in /tmp.
try() {
	local name=$1 packages=$2 check=$3 root started=$SECONDS
	if [ -z "$packages" ]; then
		echo "packages: $name: there is no such list where it is looked for" >&2
		return 1
	fi
	root=$(mktemp -d "$cache/$name.XXXXXX")
	cp -a "$base/." "$root"
	[ -z "${4:-}" ] || cp "$4" "$root/tmp/"
	# shellcheck disable=SC2086 # one word a package
	quietly "$cache/$name.log" inside "$root" bash -ec 'apt-get update && apt-get install -y --no-install-recommends "$@"' install $packages
	if ! quietly "$cache/$name.log" inside "$root" bash -euc "$check"; then
		echo "packages: $name: its root is $root" >&2
		return 1
	fi
	rm -rf "$root"
	echo "packages: $name: $packages: $((SECONDS - started)) s"
}

# What docker/engine.sh names: a container starts, in a network of its own, and
# finds another by its name.
try_engine() {
	CGO_ENABLED=0 GOWORK=off go build -C cmd/healthcheck -trimpath -o "$cache/healthcheck" .
	try engine "$(sed -n 's/.*apt-get install --no-install-recommends \(podman .*\)/\1/p' docker/engine.sh)" '
		podman() { command podman --storage-driver vfs --cgroup-manager cgroupfs --runtime runc "$@"; }
		cd /tmp
		tar -c healthcheck | podman import --change "ENTRYPOINT [\"/healthcheck\"]" - localhost/try >/dev/null
		podman network create try >/dev/null
		status=0
		podman run --rm --network try --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 localhost/try http://127.0.0.1:9/ || status=$?
		# The program ran: nothing answers there.
		[ $status -eq 1 ]
	' "$cache/healthcheck"
}

# What CONTRIBUTING.md names: Go compiles a component with its C code, and make
# has what it looks for.
try_build() {
	try build "$(sed -n 's/.*apt-get install --no-install-recommends \(gcc .*\)$/\1/p' CONTRIBUTING.md)" '
		cd "$REPOSITORY"
		make needs
		GOWORK=off go build -C receiver/gpureceiver ./internal/nvmlsource
		git init --quiet /tmp/repository
		python3 -c "import json, ssl"
	'
}

# What the examples name: Python makes virtual environments, and PyTorch loads.
try_examples() {
	try examples "$(sed -n 's/^# apt: *//p' examples/*/requirements.in | tr ' ' '\n' | sort -u | tr '\n' ' ')" '
		/usr/bin/python3 -m venv --system-site-packages /tmp/venv
		/tmp/venv/bin/python -c "import torch; assert torch.ones(2).sum() == 2"
	'
}

# What docker/Dockerfile names: docker/rootfs.sh finds all that the image has.
try_image() {
	try image "$(sed -n 's/.*apt-get install -y --no-install-recommends \(.*\)$/\1/p' docker/Dockerfile)" '
		"$REPOSITORY/docker/rootfs.sh" /rootfs
		test -s /rootfs/etc/ssl/certs/ca-certificates.crt
		test -s /rootfs/usr/share/zoneinfo/Europe/Berlin
		chroot /rootfs /usr/lib64/ld-linux-x86-64.so.2 --version || chroot /rootfs /lib64/ld-linux-x86-64.so.2 --version
	'
}

# What e2e/page/chromium.sh names: Chromium starts and reads a page.
try_page() {
	try page "$(sed -n 's/^packages="\(.*\)"$/\1/p' e2e/page/chromium.sh)" '
		chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
			--disable-component-update --disable-sync --dump-dom "data:text/html,<p>read</p>" | grep -q "<p>read</p>"
	'
}

# What e2e/grafana/page.sh names: Node.js is new enough, and npm runs.
try_grafana() {
	try grafana "$(sed -n 's/^packages="\(.*\)"$/\1/p' e2e/grafana/page.sh)" '
		node -e "process.exit(process.versions.node.split(\".\")[0] < 18 ? 1 : 0)"
		npm --version
	'
}

# What e2e/servers/kafka/fetch.sh names: Maven runs, and so does Java.
try_kafka() {
	try kafka "$(sed -n 's/^packages="\(.*\)"$/\1/p' e2e/servers/kafka/fetch.sh)" '
		java -version
		mvn --version
	'
}

# What e2e/cluster/packages.sh names: a node has its container runtime and the
# plugins of its network.
try_cluster() {
	try cluster "$(sed -n 's/^packages="\(.*\)"$/\1/p' e2e/cluster/packages.sh)" '
		"$REPOSITORY/e2e/cluster/packages.sh"
		containerd --version
		runc --version
		CNI_COMMAND=VERSION /usr/lib/cni/bridge </dev/null
		iptables --version
		ipset --version
		ip -Version
		openssl version
		curl --version
	'
}

# What e2e/release/compiler.sh names: a program for arm64 with C code is linked and runs.
try_release() {
	try release "$(sed -n 's/^packages="\(.*\)"$/\1/p' e2e/release/compiler.sh)" '
		"$REPOSITORY/e2e/release/compiler.sh"
		echo "int main(void) { return 0; }" >/tmp/program.c
		aarch64-linux-gnu-gcc -o /tmp/program /tmp/program.c
		qemu-aarch64-static -L /usr/aarch64-linux-gnu /tmp/program
	'
}

# What e2e/servers/Dockerfile names: the health checks of the compose file have
# their client.
try_servers() {
	try servers "$(sed -n 's/.*apt-get install -y --no-install-recommends \(.*\)$/\1/p' e2e/servers/Dockerfile)" '
		wget --version
	'
}

status=0
for list in "${@:-cluster engine build examples grafana image kafka page release servers}"; do
	for name in $list; do
		# Where a failure is looked at, a function goes on after it.
		set +e
		(set -e; "try_$name")
		result=$?
		set -e
		[ $result -eq 0 ] || { status=1; echo "packages: $name FAILED" >&2; }
	done
done
exit $status
