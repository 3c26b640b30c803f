#!/bin/sh
# licenses.sh OUT MODULES collects what the licences of everything that is
# compiled into otelcol-ml ask to be passed on: texts, notices and, for the
# licences that ask for it, sources, into OUT by import path. It fails where a
# dependency has a licence that this project cannot pass on, or one that nobody
# knows. MODULES gets the licence files of each module as the module cache has
# them, where syft looks for the names of licences.
#
# It needs Go, and go-licenses in PATH.
set -eu

out=$1 modules=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../distribution"
export GOWORK=off CGO_ENABLED=1
GOFLAGS="-tags=$(sed -n 's/^  build_tags: *//p' ../builder-config.yaml) $(go env GOFLAGS)"
export GOFLAGS
# What lies below it is the standard library. A program that was built with
# -trimpath cannot know, and takes everything for it.
GOROOT=$(go env GOROOT)
export GOROOT

# go-licenses does not recognise these two. Both are under Apache-2.0: the first
# has it without its appendix, the second has those of its parts below it.
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
	# What go-licenses was not asked for, or passes over because of its name.
	if [ ! -d "$out/$module" ]; then
		mkdir -p "$out/$module"
		cp -R "$licensed/." "$out/$module/"
	fi
done
# The module cache is read-only; what was copied from it has to be removable.
chmod -R u+w "$out" "$modules"
