#!/usr/bin/env bash
# racing.sh race|plain: prints the packages of go.work whose tests need the race
# detector, or those whose tests do not. It asks the sources: code runs at the same
# time as other code only where something starts a goroutine, or calls back from one.
# A package needs the detector if it does so itself, in its tests too, or if one of
# this repository's packages does that it imports, and they that those import. Who
# takes no more of net/http than the key of an address in a context starts nothing.
# Those with the most tests come first, so that none of them runs alone at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."

starts='(^[[:space:]]+|[{;:] )go [A-Za-z(]|\.Go\(|AfterFunc\(|\.Parallel\(\)|RunParallel\(|[a-z_.] "net/http"|"net/http/|\<http\.([A-KM-Z]|Li)|/(exporterhelper|scraperhelper|grpc)"'

packages=$(go list -f '{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}' work)
mapfile -t folders < <(cut -d'|' -f2 <<<"$packages")
{
	find "${folders[@]}" -maxdepth 1 -name '*.go' -printf 'size|%h|%s\n'
	find "${folders[@]}" -maxdepth 1 -name '*.go' -exec grep -lE "$starts" {} + | sed -E 's/(.*)\/(.*)/starts|\1|\2/'
	echo "$packages"
} |
	awk -F'|' -v wanted="$1" '
		$1 == "size" { size[$2] += $3; next }
		$1 == "starts" { if ($3 ~ /_test\.go$/) own[$2]; else code[$2]; next }
		{ folder[$1] = $2; imports[$1] = $3; tests[$1] = $4 }
		function starts(package,   n, i, all) { # in its code or below
			if (!(package in known)) {
				known[package] = folder[package] in code
				n = split(imports[package], all, " ")
				for (i = 1; i <= n && !known[package]; i++) if (all[i] in folder) known[package] = starts(all[i])
			}
			return known[package]
		}
		function races(package,   n, i, all) {
			if (folder[package] in own || starts(package)) return 1
			n = split(tests[package], all, " ")
			for (i = 1; i <= n; i++) if (all[i] in folder && starts(all[i])) return 1
			return 0
		}
		END { for (package in folder) if ((wanted == "race") == races(package)) print size[folder[package]], package }' |
	sort -nr | cut -d' ' -f2
