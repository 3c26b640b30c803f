#!/bin/sh
# Installs the Debian packages that a cluster of one node needs, as root or with sudo:
# containerd, runc, CNI plugins and what rules for packets need. Exits with 75 where they cannot be had.
set -eu

packages="containerd runc containernetworking-plugins iptables ipset iproute2 openssl curl"
found=true
for program in containerd runc /usr/lib/cni/bridge iptables ipset ip openssl curl; do
	command -v "$program" >/dev/null 2>&1 || found=false
done
! $found || exit 0
sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo -n"
# shellcheck disable=SC2086 # a list of words
if ! { $sudo apt-get update -q && $sudo apt-get install -q -y --no-install-recommends $packages; } >/dev/null; then
	echo "cluster: these Debian packages are missing and cannot be installed: $packages" >&2
	exit 75
fi
