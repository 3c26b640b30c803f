#!/usr/bin/env bash
# Has a Debian of nothing but its base in $base, for the scripts of this folder, which
# source it in the repository's root. They leave their tests out where that is
# impossible.

release=bookworm
cache=$PWD/.cache/packages
base=$cache/$release

leave_out() {
	echo "packages: LEFT OUT: $*" >&2
	[ "${CI:-}" = true ] && exit 1
	exit 0
}

# quietly LOG COMMAND… shows a command's output only if it fails.
quietly() {
	local log=$1
	shift
	if ! "$@" >"$log" 2>&1 </dev/null; then
		echo "packages: failed: $*" >&2
		tail -n 40 "$log" >&2
		return 1
	fi
}

[ "$(id -u)" -eq 0 ] || leave_out "that takes root"
if ! command -v debootstrap >/dev/null; then
	echo "packages: installing debootstrap"
	mkdir -p "$cache"
	quietly "$cache/apt.log" apt-get update || true
	quietly "$cache/apt.log" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends debootstrap || leave_out "debootstrap cannot be installed"
fi

mkdir -p "$cache"
if [ ! -f "$base/.whole" ]; then
	echo "packages: making a Debian $release of nothing but its base: 1 to 2 minutes"
	rm -rf "$base"
	quietly "$cache/debootstrap.log" debootstrap --variant=minbase --include=ca-certificates "$release" "$base" || leave_out "debootstrap made no $release"
	touch "$base/.whole"
fi
