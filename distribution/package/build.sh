#!/usr/bin/env bash
# Writes the packages of otelcol-ml and of otelcol-ml-agent: deb, rpm and tar.gz, with a
# bill of materials and checksums beside them. `make packages` runs it after building what
# it needs. The same programs and the same commit give the same bytes.
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
VERSION=$version
export SOURCE_DATE_EPOCH ARCH BIN STAGE CONFIG VERSION
umask 022

rm -f "$out"/otelcol-ml{-,_}* "$out/SHA256SUMS"
mkdir -p "$out" "$STAGE/prometheus/rules" "$STAGE/licenses"
install -m 0644 docker/prometheus/rules/*.yaml "$STAGE/prometheus/rules/"
cp -R bin/licenses/. "$STAGE/licenses/"
find "$STAGE/licenses" -name .gitignore -delete
chmod -R u=rwX,go=rX "$STAGE/licenses"
gzip -9nc CHANGELOG.md >"$STAGE/changelog.gz"
maintainer=$(sed -n 's/^maintainer: *//p' distribution/package/nfpm.yaml)

# package PROGRAM OTHER MANIFEST CONFIGURATION… writes the packages and the archive of a
# program. Its packages conflict with those of the other one.
package() {
	export PROGRAM=$1 OTHER=$2 OWN=$STAGE/$1 GLIBC SUMMARY
	# The newest version of the C library that the collector asks for.
	GLIBC=$(readelf --wide --version-info "$BIN/$PROGRAM" | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -uV | tail -n 1)
	if [ -z "$GLIBC" ]; then
		echo "packages: $BIN/$PROGRAM names no version of the C library" >&2
		exit 1
	fi
	SUMMARY=$(sed -n 's/^  description: *//p' "$3")
	shift 3
	distribution/package/stage.sh "$PROGRAM" "$OWN"
	mkdir "$OWN/config"
	install -m 0644 "$@" "$OWN/config/"
	gzip -9nc "$OWN/otelcol-ml.8" >"$OWN/$PROGRAM.8.gz"
	gzip -9nc >"$OWN/changelog.Debian.gz" <<-END
		$PROGRAM (${version/-/\~}-1) unstable; urgency=medium

		  * Version $version; see changelog.gz.

		 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
	END
	local format said name=$PROGRAM-$version-linux-$ARCH
	for format in deb rpm; do
		said=$("$tools/nfpm" package --config "$OWN/nfpm.yaml" --packager $format --target "$out") || { echo "$said" >&2; exit 1; }
	done

	mkdir -p "$STAGE/$name/systemd"
	install -m 0755 "$BIN/$PROGRAM" "$BIN/queuecheck" "$STAGE/$name/"
	cp -R "$OWN/config" "$STAGE/prometheus" "$STAGE/licenses" "$STAGE/$name/"
	install -m 0644 LICENSE CHANGELOG.md "$STAGE/$name/"
	install -m 0644 "$OWN/otelcol-ml.8" "$STAGE/$name/$PROGRAM.8"
	install -m 0644 "$OWN"/*.service "$OWN"/*.conf "$STAGE/$name/systemd/"
	tar --create --directory "$STAGE" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" | gzip -n >"$out/$name.tar.gz"
}
# demo.yaml plays a recording of the repository.
shopt -s extglob
package otelcol-ml otelcol-ml-agent builder-config.yaml distribution/config/!(demo).yaml
# What the smaller collector can run.
package otelcol-ml-agent otelcol-ml builder-agent.yaml distribution/config/{agent,archive,llm-backend,nccl,production}.yaml

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
