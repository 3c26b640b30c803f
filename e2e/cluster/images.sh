#!/usr/bin/env bash
# Writes the images that the node has into .cache/cluster/images, as archives: that of
# `make image`, one with a shell and mlgen for pods that train, and the one that holds the
# namespaces of a pod.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=.cache/cluster
mkdir -p $out/images
# shellcheck source=docker/engine.sh
. docker/engine.sh
version=$(sed -n 's/^  version: *//p' builder-config.yaml)
base=$(debian)

GOWORK=off CGO_ENABLED=0 go -C e2e build -trimpath -o "$PWD/$out/pause" ./cluster/pause
cat >$out/pause.Dockerfile <<-END
	FROM scratch
	COPY pause /pause
	USER 65535:65535
	ENTRYPOINT ["/pause"]
END
build $out $out/pause.Dockerfile pause:1
cp -f bin/mlgen $out/mlgen
cat >$out/training.Dockerfile <<-END
	FROM $base
	COPY mlgen /usr/local/bin/mlgen
	USER 10002:10002
END
build $out $out/training.Dockerfile otelcol-ml-training:1
for image in "otelcol-ml:$version" pause:1 otelcol-ml-training:1; do
	rm -f "$out/images/${image%:*}.tar"
	"$engine" save --output "$out/images/${image%:*}.tar" "$image"
done
