#!/bin/sh
# rootfs.sh ROOT ARCH creates the root file system of the image from Debian packages for
# a processor, amd64 or arm64: the C library, CA certificates and time zones, without a
# shell and a package manager. var/lib/dpkg/status.d lists the packages, as scanners expect.
set -eu
root=$1 arch=$2

# On Debian these are links into usr, and the loader's path contains one.
mkdir -p "$root"
for link in bin lib lib32 lib64 libx32 sbin; do
	if [ -L "/$link" ]; then
		mkdir -p "$root/$(readlink "/$link")"
		cp -P "/$link" "$root/"
	fi
done

mkdir -p "$root/var/lib/dpkg/status.d" /packages
# apt-get downloads as a user of its own.
chown _apt /packages
cd /packages
apt-get download "base-files:$arch" "libc6:$arch" ca-certificates tzdata
for package in *.deb; do
	dpkg-deb --fsys-tarfile "$package" >files.tar
	tar -tf files.tar | sed 's/^\.//' | while read -r path; do
		case $path in
		/usr/share/doc/*/copyright | /usr/share/common-licenses/*) ;;
		# Unused: character sets, single certificates, documentation and tools.
		/usr/share/doc/* | /usr/share/man/* | /usr/share/locale/* | /usr/share/lintian/* | /usr/share/bug/*) continue ;;
		/usr/lib/*/gconv/* | /lib/*/gconv/* | /usr/share/ca-certificates/* | /usr/share/zoneinfo/right/* | /usr/share/zoneinfo/posix/*) continue ;;
		/usr/sbin/* | /sbin/* | /etc/update-motd.d/* | /etc/ca-certificates/* | /usr/share/base-files/*) continue ;;
		esac
		case $path in */) ;; *) echo ".$path" ;; esac
	done >wanted
	tar -C "$root" --keep-directory-symlink --no-recursion --files-from wanted -xpf files.tar
	dpkg-deb --info "$package" control >"$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$package" Package)"
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
