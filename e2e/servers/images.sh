#!/usr/bin/env bash
# Provides the images of Jaeger and Prometheus that docker/compose.yaml names:
# pulls them, or where no registry can be reached, builds stand-ins of the servers
# in .cache/servers. It writes .cache/image/servers, a line for each: the name in
# the compose file and the image to run.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=docker/engine.sh
. docker/engine.sh

mkdir -p .cache/image
: >.cache/image/servers.new
for server in jaeger prometheus; do
	named=$(sed -n "s#^    image: \(.*/$server:.*\)#\1#p" docker/compose.yaml)
	image=docker.io/$named
	if ! have "$image"; then
		version=$(sed -n "s#.*github.com/.*/$server v\([^ ]*\).*#\1#p" "e2e/servers/$server/go.mod" | head -n 1)
		image=localhost/otelcol-ml-stand-in/$server:$version
		echo "servers: $named cannot be pulled; $image stands in for it, built from its module" >&2
		build .cache/servers/ e2e/servers/Dockerfile "$image" --target "$server" \
			--build-arg DEBIAN="$(debian)" --build-arg VERSION="$version" >.cache/image/"$server".log 2>&1 ||
			{ cat .cache/image/"$server".log >&2; exit 1; }
	fi
	echo "$named $image" >>.cache/image/servers.new
done
mv .cache/image/servers.new .cache/image/servers
