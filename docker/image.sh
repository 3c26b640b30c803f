#!/usr/bin/env bash
# Builds the image otelcol-ml:<version>, or otelcol-ml-agent:<version>, with docker or
# podman. `make image` runs it after building bin/.
#
#   ENGINE   docker or podman                    (whichever works)
#   BINARY   host uses what `make build` compiled; compiled compiles in a container,
#            for machines whose C library is newer than Debian 12's
#                                                (host)
#   PROGRAM  otelcol-ml, or otelcol-ml-agent, which is smaller
#                                                (otelcol-ml)
#   ARCH     amd64 or arm64. The image for another processor than this machine's is
#            otelcol-ml:<version>-<ARCH>, of the programs in bin/<ARCH>
#                                                (this machine's)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=docker/engine.sh
. docker/engine.sh

version=$(sed -n 's/^  version: *//p' builder-config.yaml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision=$revision-modified
# The commit's time, so that the same commit gives the same labels.
created=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo unknown)

program=${PROGRAM:-otelcol-ml}
case $program in
otelcol-ml) limit=200000000 ;;
otelcol-ml-agent) limit=85000000 ;;
*) echo "image: PROGRAM is $program; it must be otelcol-ml or otelcol-ml-agent" >&2 && exit 1 ;;
esac

case $(uname -m) in aarch64) own=arm64 ;; *) own=amd64 ;; esac
arch=${ARCH:-$own} tag=$program:$version bin=bin
case $arch in
"$own") ;;
amd64 | arm64) tag=$tag-$arch bin=bin/$arch layers=false ;;
*) echo "image: ARCH is $arch; it must be amd64 or arm64" >&2 && exit 1 ;;
esac

base=$(debian)
# Labels are also set directly: Debian 12's podman reuses the layer of another build
# that differs only in these arguments.
started=$SECONDS
build . docker/Dockerfile "$tag" --platform "linux/$arch" --build-arg BUILDPLATFORM="linux/$own" \
	--build-arg PROGRAM="$program" --build-arg DEBIAN="$base" --build-arg BINARY="${BINARY:-host}" --build-arg BIN="$bin" \
	--build-arg VERSION="$version" --build-arg REVISION="$revision" --build-arg CREATED="$created" \
	--label org.opencontainers.image.revision="$revision" --label org.opencontainers.image.created="$created"
size=$("$engine" image inspect --format '{{.Size}}' "$tag")
echo "image: $tag is built by $engine in $((SECONDS - started)) s: $(((size + 500000) / 1000000)) MB, on $base"
# The project's limits for the images.
if [ "$size" -ge "$limit" ]; then
	echo "image: it must be smaller than $((limit / 1000000)) MB" >&2
	exit 1
fi
