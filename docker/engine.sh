# shellcheck shell=bash
# Sourced by the scripts that build images. Sets engine to ENGINE, or to docker or
# podman, whichever works. Without a working engine it exits with a message.

engine_works() {
	case $1 in
	docker) docker info >/dev/null 2>&1 ;;
	podman) podman info >/dev/null 2>&1 ;;
	*)
		echo "image: ENGINE is \"$1\"; allowed are docker and podman" >&2
		exit 1
		;;
	esac
}

engine=${ENGINE:-}
if [ -z "$engine" ]; then
	for candidate in docker podman; do
		if engine_works "$candidate"; then
			engine=$candidate
			break
		fi
	done
fi
if [ -z "$engine" ] || ! engine_works "$engine"; then
	cat >&2 <<-'END'
		image: neither docker nor podman works here. Needed is one of
		  docker, with its daemon running ("docker info" says what is wrong), or
		  podman; on Debian and Ubuntu:
		    apt-get install --no-install-recommends podman runc netavark aardvark-dns nftables iptables debootstrap
	END
	exit 1
fi

# build CONTEXT FILE TAG ARGUMENT… builds an image. With layers=false, podman neither uses
# nor keeps parts of it: podman 4.3 takes those of another processor for its own.
build() {
	context=$1 file=$2 tag=$3
	shift 3
	case $engine in
	docker) DOCKER_BUILDKIT=1 docker build --file "$file" --tag "$tag" "$@" "$context" ;;
	# chroot isolation works wherever podman is installed.
	podman) podman build --layers="${layers:-true}" --isolation chroot --network host --format docker --file "$file" --tag "$tag" "$@" "$context" ;;
	esac
}

# have IMAGE succeeds if an image exists or can be pulled.
have() {
	"$engine" image inspect "$1" >/dev/null 2>&1 || "$engine" pull --quiet "$1" >/dev/null 2>&1
}

# debian prints the Debian image to build on: the official one, or without a
# registry one that debootstrap makes of Debian's packages.
debian() {
	release=bookworm official=docker.io/library/debian:bookworm-slim local=localhost/otelcol-ml-debian:bookworm
	if have "$official"; then
		echo "$official"
		return
	fi
	if ! "$engine" image inspect "$local" >/dev/null 2>&1; then
		if ! command -v debootstrap >/dev/null; then
			echo "image: $official cannot be pulled, and debootstrap, which would make such an image, is missing: apt-get install debootstrap" >&2
			exit 1
		fi
		echo "image: $official cannot be pulled; debootstrap makes $local, once: 1 to 2 minutes" >&2
		mkdir -p .cache/image
		root=.cache/image/$release
		rm -rf "$root"
		if ! debootstrap --variant=minbase --include=ca-certificates "$release" "$root" >.cache/image/debootstrap.log 2>&1; then
			tail -n 20 .cache/image/debootstrap.log >&2
			exit 1
		fi
		# The official image has the security updates too.
		sed -n "s#/debian $release #/debian-security $release-security #p" "$root/etc/apt/sources.list" >"$root/etc/apt/sources.list.d/security.list"
		rm -f "$root"/var/cache/apt/archives/*.deb
		tar -C "$root" --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -c . | "$engine" import - "$local" >/dev/null
		rm -rf "$root"
	fi
	echo "$local"
}
