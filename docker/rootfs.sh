#!/bin/sh
# rootfs.sh ROOT creates the root file system of the image from installed Debian
# packages: the C library, CA certificates and time zones, without a shell and a
# package manager. var/lib/dpkg/status.d lists the packages, as scanners expect.
set -eu
root=$1

# On Debian these are links into usr, and the loader's path contains one.
mkdir -p "$root"
for link in bin lib lib32 lib64 libx32 sbin; do
	if [ -L "/$link" ]; then
		mkdir -p "$root/$(readlink "/$link")"
		cp -P "/$link" "$root/"
	fi
done

mkdir -p "$root/var/lib/dpkg/status.d"
for package in base-files libc6 ca-certificates tzdata; do
	dpkg-query -L "$package" | while read -r path; do
		case $path in
		/usr/share/doc/*/copyright | /usr/share/common-licenses/*) ;;
		# Unused: character sets, single certificates, documentation and tools.
		/usr/share/doc/* | /usr/share/man/* | /usr/share/locale/* | /usr/share/lintian/* | /usr/share/bug/*) continue ;;
		/usr/lib/*/gconv/* | /lib/*/gconv/* | /usr/share/ca-certificates/* | /usr/share/zoneinfo/right/* | /usr/share/zoneinfo/posix/*) continue ;;
		/usr/sbin/* | /sbin/* | /etc/update-motd.d/* | /etc/ca-certificates/* | /usr/share/base-files/*) continue ;;
		esac
		if [ -L "$path" ] || [ -f "$path" ]; then echo "${path#/}"; fi
	done | tar -C / --no-recursion -cT - | tar -C "$root" --keep-directory-symlink -xp
	dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
done
cp /etc/ld.so.conf "$root/etc/"
mkdir -p "$root/etc/ssl/certs"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

echo 'root:x:0:0:root:/root:/usr/sbin/nologin
otelcol-ml:x:10001:10001:otelcol-ml:/var/lib/otelcol-ml:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'root:x:0:
otelcol-ml:x:10001:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
install -d -m 1777 "$root/tmp"

# Names of the stock images. Engines mount at the target of a link, so a
# configuration that is mounted at any of these paths is the one in use.
mkdir -p "$root/etc/otelcol-ml"
for name in otelcol otelcol-contrib; do
	ln -s otelcol-ml "$root/etc/$name"
	ln -s otelcol-ml "$root/$name"
done
