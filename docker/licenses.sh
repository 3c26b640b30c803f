#!/bin/sh
# licenses.sh OUT MODULES collects into OUT, by import path, what the licenses of all
# dependencies require to be passed on: texts, notices and, if required, sources. It
# fails if a license forbids that or is unknown. MODULES gets the license files of
# each module in the layout of the module cache, where syft reads license names.
#
# It needs Go, and go-licenses in PATH.
set -eu

out=$1 modules=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../distribution"
export GOWORK=off CGO_ENABLED=1
GOFLAGS="-tags=$(sed -n 's/^  build_tags: *//p' ../builder-config.yaml) $(go env GOFLAGS)"
export GOFLAGS
# go-licenses identifies the standard library by this folder. Built with -trimpath,
# it does not know the folder itself.
GOROOT=$(go env GOROOT)
export GOROOT

# go-licenses does not recognize the Apache-2.0 licenses of these two: the first
# lacks the appendix, the second contains the licenses of its parts.
unrecognised='github.com/Showmax/go-fqdn github.com/apache/thrift'
ignored=github.com/otelcol-ml/otelcol-ml
for module in $unrecognised; do ignored=$ignored,$module; done

rm -rf "$out" "$modules"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for action in "check . --disallowed_types=forbidden,restricted,unknown" "save . --save_path=$out"; do
	# shellcheck disable=SC2086
	if ! go-licenses $action --ignore "$ignored" --logtostderr=false --stderrthreshold=ERROR >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
done

if [ ! -d "$out/go.opentelemetry.io" ]; then
	echo "licenses: go-licenses found none of the collector's own" >&2
	exit 1
fi
mkdir -p "$out/go"
cp "$GOROOT/LICENSE" "$out/go/"

cache=$(go env GOMODCACHE)
go list -deps -f '{{with .Module}}{{.Path}} {{.Dir}}{{end}}' . >"$log"
sort -u "$log" | while read -r module dir; do
	case $dir in
	"$cache"/*) ;;
	*) continue ;;
	esac
	licensed=$modules/${dir#"$cache"/}
	mkdir -p "$licensed"
	find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) -exec cp {} "$licensed/" \;
	# Modules that go-licenses ignored or skipped because of a file name.
	if [ ! -d "$out/$module" ]; then
		mkdir -p "$out/$module"
		cp -R "$licensed/." "$out/$module/"
	fi
done
# Files copied from the read-only module cache must be removable.
chmod -R u+w "$out" "$modules"
