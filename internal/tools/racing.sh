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

go list -f '{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}' work |
	while IFS='|' read -r package folder imports tests; do
		code=no own=no
		for file in "$folder"/*.go; do
			if grep -Eq "$starts" "$file"; then
				case $file in *_test.go) own=yes ;; *) code=yes ;; esac
			fi
		done
		size=$(cat "$folder"/*.go | wc -c)
		echo "$package|$code|$own|$imports|$tests|$size"
	done |
	sort -t'|' -k6,6nr |
	awk -F'|' -v wanted="$1" '
		{ order[NR] = $1; code[$1] = $2; own[$1] = $3; imports[$1] = $4; tests[$1] = $5 }
		function starts(package,   n, i, all) { # in its code or below
			if (!(package in known)) {
				known[package] = code[package] == "yes"
				n = split(imports[package], all, " ")
				for (i = 1; i <= n && !known[package]; i++) if (all[i] in code) known[package] = starts(all[i])
			}
			return known[package]
		}
		function races(package,   n, i, all) {
			if (own[package] == "yes" || starts(package)) return 1
			n = split(tests[package], all, " ")
			for (i = 1; i <= n; i++) if (all[i] in code && starts(all[i])) return 1
			return 0
		}
		END { for (i = 1; i <= NR; i++) if ((wanted == "race") == races(order[i])) print order[i] }'
