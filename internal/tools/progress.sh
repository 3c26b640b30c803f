#!/usr/bin/env bash
# Shows how far a long step is: a bar on a terminal, elsewhere a line every
# PROGRESS_EVERY seconds (10). It writes to stderr.
#
#   progress.sh go WHAT build|install ARGUMENT…
#       Runs the go command and counts the packages compiled, of all that have
#       to be, and the modules downloaded. Everything else that the command
#       prints is shown. The exit status is the command's.
#
#   COMMAND | progress.sh lines WHAT TOTAL PATTERN
#       Counts the lines that match a regular expression and shows no line.
set -euo pipefail

readonly every=${PROGRESS_EVERY:-10}
readonly form=$1 what=$2
shift 2
next=$every drawn=
[ -t 2 ] && terminal=1 || terminal=

clear_bar() {
	if [ "$drawn" ]; then
		printf '\r\033[K' >&2
		drawn=
	fi
}

# report WHAT DONE TOTAL; a total of 0 is unknown.
report() {
	local text="$1: $2" width=30
	[ "$3" -eq 0 ] || text+=" of $3"
	if [ "$terminal" ]; then
		if [ "$3" -gt 0 ]; then
			local bar
			printf -v bar '%*s' $(($2 * width / $3)) ''
			printf -v text '[%-*s] %s' "$width" "${bar// /#}" "$text"
		fi
		printf '\r\033[K%s' "${text:0:$((${COLUMNS:-80} - 1))}" >&2
		drawn=1
	elif [ "$SECONDS" -ge "$next" ]; then
		echo "$text" >&2
		next=$((SECONDS + every))
	fi
}

# finish WHAT DONE leaves one line of a step that was long enough to be shown.
finish() {
	clear_bar
	[ "$2" -eq 0 ] || [ "$SECONDS" -lt "$every" ] || echo "$1: $2 in $SECONDS s" >&2
}

# follow_go FILE reads what a go command prints. The file has the import path of
# each package to be compiled, and empty lines.
follow_go() {
	local -A compiled=()
	local line path total=0 packages=0 modules=0
	while read -r path; do
		if [ -n "$path" ]; then
			compiled[$path]=1
			total=$((total + 1))
		fi
	done <"$1"
	while IFS= read -r line || [ -n "$line" ]; do
		if [[ $line == "go: downloading "* ]]; then
			modules=$((modules + 1))
			report "$what: modules downloaded" "$modules" 0
		elif [ -n "$line" ] && [ "${compiled[$line]:-}" ]; then
			packages=$((packages + 1))
			report "$what: packages compiled" "$packages" "$total"
		else
			clear_bar
			printf '%s\n' "$line" >&2
		fi
	done
	finish "$what: modules downloaded" "$modules"
	finish "$what: packages compiled" "$packages"
}

run_go() {
	local command=$1 flags=() list
	shift
	list=$(mktemp)
	# shellcheck disable=SC2064 # the name as it is now
	trap "rm -f '$list'" EXIT
	# go list takes what go build and go install take, but for -o.
	local arguments=("$@")
	while [ $# -gt 0 ]; do
		if [ "$1" = -o ]; then shift; else flags+=("$1"); fi
		shift
	done
	go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${flags[@]}" 2>&1 >"$list" | follow_go /dev/null
	go "$command" -v "${arguments[@]}" 2>&1 | follow_go "$list"
}

follow_lines() {
	local total=$1 pattern=$2 line count=0
	while IFS= read -r line || [ -n "$line" ]; do
		if [[ $line =~ $pattern ]]; then
			count=$((count + 1))
			report "$what" "$count" "$total"
		fi
	done
	finish "$what" "$count"
}

case $form in
go) run_go "$@" ;;
lines) follow_lines "$@" ;;
*)
	echo "usage: progress.sh go|lines WHAT …" >&2
	exit 2
	;;
esac
