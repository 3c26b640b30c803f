#!/usr/bin/env bash
# Builds the image otelcol-ml:<version> with docker or podman. `make image` runs it
# after building bin/.
#
#   ENGINE   docker or podman                    (whichever works)
#   BINARY   host uses what `make build` compiled; compiled compiles in a container,
#            for machines whose C library is newer than Debian 12's
#                                                (host)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=docker/engine.sh
. docker/engine.sh

version=$(sed -n 's/^  version: *//p' builder-config.yaml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision=$revision-modified
# The commit's time, so that the same commit gives the same labels.
created=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo unknown)

base=$(debian)
# Labels are also set directly: Debian 12's podman reuses the layer of another build
# that differs only in these arguments.
started=$SECONDS
build . docker/Dockerfile "otelcol-ml:$version" \
	--build-arg DEBIAN="$base" --build-arg BINARY="${BINARY:-host}" \
	--build-arg VERSION="$version" --build-arg REVISION="$revision" --build-arg CREATED="$created" \
	--label org.opencontainers.image.revision="$revision" --label org.opencontainers.image.created="$created"
size=$("$engine" image inspect --format '{{.Size}}' "otelcol-ml:$version")
echo "image: otelcol-ml:$version is built by $engine in $((SECONDS - started)) s: $(((size + 500000) / 1000000)) MB, on $base"
# The project's limit for the image.
if [ "$size" -ge 200000000 ]; then
	echo "image: it must be smaller than 200 MB" >&2
	exit 1
fi
