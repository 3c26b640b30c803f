#!/usr/bin/env bash
# Writes the packages of otelcol-ml: deb, rpm and tar.gz, with a bill of materials and
# checksums beside them. `make packages` runs it after building what it needs. The same
# programs and the same commit give the same bytes.
#
#   OUT      the folder to write                       (dist)
#   BIN      the folder with the programs              (bin)
#   ARCH     the processor that they are for           (that of this machine)
#   VERSION  the version of the packages               (the one in builder-config.yaml)
#   CONFIG   what becomes /etc/otelcol-ml/config.yaml  (distribution/config/agent.yaml)
#   SOURCE_DATE_EPOCH  the time of all files           (the commit's)
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$PWD/.cache/bin

version=${VERSION:-$(sed -n 's/^  version: *//p' builder-config.yaml)}
out=${OUT:-dist}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
ARCH=${ARCH:-$(go env GOARCH)}
BIN=${BIN:-bin}
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT
CONFIG=${CONFIG:-distribution/config/agent.yaml}
# The newest version of the C library that the collector asks for.
GLIBC=$(readelf --wide --version-info "$BIN/otelcol-ml" | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -uV | tail -n 1)
if [ -z "$GLIBC" ]; then
	echo "packages: $BIN/otelcol-ml names no version of the C library" >&2
	exit 1
fi
VERSION=$version
export SOURCE_DATE_EPOCH ARCH BIN STAGE CONFIG GLIBC VERSION
umask 022

rm -f "$out"/otelcol-ml{-,_}* "$out/SHA256SUMS"
mkdir -p "$out" "$STAGE/config" "$STAGE/prometheus/rules" "$STAGE/licenses"
# demo.yaml plays a recording of the repository.
for file in distribution/config/*.yaml; do
	[ "$file" = distribution/config/demo.yaml ] || install -m 0644 "$file" "$STAGE/config/"
done
install -m 0644 docker/prometheus/rules/*.yaml "$STAGE/prometheus/rules/"
cp -R bin/licenses/. "$STAGE/licenses/"
find "$STAGE/licenses" -name .gitignore -delete
chmod -R u=rwX,go=rX "$STAGE/licenses"
gzip -9nc distribution/package/otelcol-ml.8 >"$STAGE/otelcol-ml.8.gz"
gzip -9nc CHANGELOG.md >"$STAGE/changelog.gz"
maintainer=$(sed -n 's/^maintainer: *//p' distribution/package/nfpm.yaml)
gzip -9nc >"$STAGE/changelog.Debian.gz" <<END
otelcol-ml (${version/-/\~}-1) unstable; urgency=medium

  * Version $version; see changelog.gz.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END

for format in deb rpm; do
	"$tools/nfpm" package --config distribution/package/nfpm.yaml --packager $format --target "$out" >/dev/null
done

# archive PROGRAM CONFIGURATION… writes the archive of a program.
archive() {
	local name=$1-$version-linux-$ARCH program=$1
	shift
	mkdir "$STAGE/$name" "$STAGE/$name/config"
	install -m 0755 "$BIN/$program" "$BIN/queuecheck" "$STAGE/$name/"
	install -m 0644 "$@" "$STAGE/$name/config/"
	cp -R "$STAGE/prometheus" "$STAGE/licenses" "$STAGE/$name/"
	install -m 0644 LICENSE CHANGELOG.md distribution/package/otelcol-ml.8 "$STAGE/$name/"
	if [ "$program" = otelcol-ml ]; then
		mkdir "$STAGE/$name/systemd"
		install -m 0644 distribution/package/{otelcol-ml.service,otelcol-ml.conf,otelcol-ml-gateway.service,otelcol-ml-gateway.conf,attribution.conf,kernel-log.conf} "$STAGE/$name/systemd/"
	fi
	tar --create --directory "$STAGE" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" | gzip -n >"$out/$name.tar.gz"
}
archive otelcol-ml "$STAGE"/config/*.yaml
# What the smaller collector can run.
archive otelcol-ml-agent "$STAGE"/config/{agent,production,nccl,archive}.yaml

# What is in the programs, by module. syft reads licenses from bin/modules. It gives
# each document the present time and a random name.
sbom=otelcol-ml-$version-linux-$ARCH.spdx.json
mkdir "$STAGE/programs"
cp "$BIN/otelcol-ml" "$BIN/otelcol-ml-agent" "$BIN/queuecheck" "$STAGE/programs/"
SYFT_CHECK_FOR_APP_UPDATE=false SYFT_GOLANG_SEARCH_LOCAL_MOD_CACHE_LICENSES=true SYFT_GOLANG_LOCAL_MOD_CACHE_DIR=$PWD/bin/modules \
	"$tools/syft" scan --quiet "dir:$STAGE/programs" --source-name otelcol-ml --source-version "$version" -o "spdx-json=$STAGE/sbom.json"
digest=$(cat "$STAGE/programs/"* | sha256sum | cut -c 1-32)
sed -E -e "s|(\"documentNamespace\": *\")[^\"]*|\1https://github.com/otelcol-ml/otelcol-ml/spdx/$version/$digest|" \
	-e "s|(\"created\": *\")[^\"]*|\1$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)|" "$STAGE/sbom.json" >"$out/$sbom"

cd "$out"
sha256sum -- *.deb *.rpm *.tar.gz *.spdx.json >SHA256SUMS
echo "packages: $out:"
du -h --apparent-size -- *
