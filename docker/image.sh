#!/usr/bin/env bash
# Builds the image otelcol-ml:<version> with docker or podman. `make image` runs
# it after what it takes from bin/ is made.
#
#   ENGINE   docker or podman                    (whichever works)
#   BINARY   host: what `make build` compiled; compiled: all is compiled in a
#            container, for machines whose C library is newer than Debian 12's
#                                                (host)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=docker/engine.sh
. docker/engine.sh

version=$(sed -n 's/^  version: *//p' builder-config.yaml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision=$revision-modified
# The commit's time and not the clock's: the same commit gives the same labels.
created=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo unknown)

base=$(debian)
# Labels by themselves too: Debian 12's podman takes the layer of another build for
# one that differs only in such arguments.
started=$SECONDS
build . docker/Dockerfile "otelcol-ml:$version" \
	--build-arg DEBIAN="$base" --build-arg BINARY="${BINARY:-host}" \
	--build-arg VERSION="$version" --build-arg REVISION="$revision" --build-arg CREATED="$created" \
	--label org.opencontainers.image.revision="$revision" --label org.opencontainers.image.created="$created"
size=$("$engine" image inspect --format '{{.Size}}' "otelcol-ml:$version")
echo "image: otelcol-ml:$version is built by $engine in $((SECONDS - started)) s: $(((size + 500000) / 1000000)) MB, on $base"
# What a machine's registry of images is allowed to take of a collector.
if [ "$size" -ge 200000000 ]; then
	echo "image: it is to be below 200 MB" >&2
	exit 1
fi
