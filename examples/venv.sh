#!/usr/bin/env bash
# Makes the virtual environment of an example: .cache/venvs/NAME below the
# repository's root, with exactly the packages of examples/NAME/requirements.txt,
# each checked against its hash.
#
#   examples/venv.sh NAME…
#
# REQUIREMENTS=e2e/backends has it take e2e/backends/NAME/requirements.txt instead.
#
# An environment is made once. A stamp in it names what it was made from, so
# that other requirements or another Python make it again. Of pip it shows how
# many packages are fetched; the output of pip and apt only where they fail.
#
# A line "# apt: PACKAGE…" in requirements.in names packages that come from the
# distribution, not from a Python registry: PyTorch, whose Linux wheels for
# x86-64 on PyPI bring several gigabytes of CUDA along. Such an environment
# belongs to /usr/bin/python3 and sees that Python's packages. What is missing
# is installed with apt-get, if this runs as root or sudo asks no password.
#
# The exit status is 0 if every environment is there, and 75 if no registry
# could be reached and everything else went well: the caller leaves out what
# needs the environment. With CI=true that is a failure like any other.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
venvs=$root/.cache/venvs
from=${REQUIREMENTS:-examples}
readonly here root venvs from
readonly unreachable=75

say() { echo "examples: $*" >&2; }

# quietly LOG COMMAND… appends a command's output to a log.
quietly() {
	local log=$1
	shift
	"$@" >>"$log" 2>&1 </dev/null
}

# show LOG MESSAGE says what failed and shows the whole log.
show() {
	say "$2"
	cat "$1" >&2
}

# as_root COMMAND… runs a command as root, or fails if that needs a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# apt_packages NAME prints the packages that an example takes from the
# distribution.
apt_packages() { sed -n 's/^# apt: *//p' "$root/$from/$1/requirements.in"; }

# install_apt LOG PACKAGE… installs those of the packages that are missing.
install_apt() {
	local log=$1 package missing=()
	shift
	for package in "$@"; do
		installed "$package" || missing+=("$package")
	done
	if [ ${#missing[@]} -eq 0 ]; then
		return
	fi
	say "installing ${missing[*]} with apt-get: 1 to 3 minutes"
	local install=(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}")
	# A new machine may have no list of packages, or an old one.
	if quietly "$log" "${install[@]}" || { quietly "$log" as_root apt-get update && quietly "$log" "${install[@]}"; }; then
		return
	fi
	show "$log" "apt-get did not install ${missing[*]}; install by hand: apt-get install --no-install-recommends ${missing[*]}"
	return 1
}

# no_registry LOG succeeds if pip failed because it reached no registry, and for
# no worse reason.
no_registry() {
	! grep -q 'DO NOT MATCH THE HASHES' "$1" && grep -qE 'NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|NameResolutionError|Temporary failure in name resolution|Network is unreachable|Max retries exceeded|from versions: none' "$1"
}

# make_venv NAME
make_venv() {
	local name=$1 venv=$venvs/$1 log=$venvs/$1.log requirements=$root/$from/$1/requirements.txt
	local python=${PYTHON:-python3} flags=() packages started=$SECONDS
	if [ ! -f "$requirements" ]; then
		say "there is no example $name: $from/$name/requirements.txt is missing"
		return 1
	fi
	mkdir -p "$venvs"
	: >"$log"

	packages=$(apt_packages "$name")
	if [ -n "$packages" ]; then
		python=/usr/bin/python3
		flags=(--system-site-packages)
		# shellcheck disable=SC2086 # one word a package
		install_apt "$log" $packages || return 1
	fi

	local stamp
	stamp="$("$python" -c 'import sys; print(sys.version)') $python ${flags[*]-} $(sha256sum <"$requirements")"
	if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/stamp" 2>/dev/null)" = "$stamp" ]; then
		return
	fi

	say "making .cache/venvs/$name with the packages of $from/$name/requirements.txt: up to a minute"
	rm -rf "$venv"
	if ! quietly "$log" "$python" -m venv ${flags[@]+"${flags[@]}"} "$venv"; then
		show "$log" "no virtual environment for $name; on Debian it needs the package python3-venv"
		return 1
	fi
	# The requirements are the whole closure, so nothing is left to resolve;
	# what comes from the distribution is not in them.
	if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
		--require-hashes --no-deps --only-binary :all: -r "$requirements" 2>&1 </dev/null | tee -a "$log" |
		"$here/../internal/tools/progress.sh" lines "examples: packages for $name" "$(grep -c == "$requirements")" '^(Collecting|Ignoring) '; then
		rm -rf "$venv"
		if no_registry "$log"; then
			return $unreachable
		fi
		show "$log" "pip did not install the packages of $from/$name/requirements.txt"
		return 1
	fi
	echo "$stamp" >"$venv/stamp"
	say "made .cache/venvs/$name in $((SECONDS - started)) s"
}

if [ $# -eq 0 ]; then
	say "usage: examples/venv.sh NAME…"
	exit 2
fi

failed=() left_out=()
for name in "$@"; do
	status=0
	make_venv "$name" || status=$?
	case $status in
	0) ;;
	"$unreachable") left_out+=("$name") ;;
	*) failed+=("$name") ;;
	esac
done

if [ ${#left_out[@]} -gt 0 ]; then
	say "################################################################"
	say "LEFT OUT: ${left_out[*]}. No Python package registry can be reached,"
	say "so nothing shows that the collector understands these clients."
	say "See .cache/venvs/${left_out[0]}.log."
	say "################################################################"
	if [ "${CI:-}" = true ]; then
		failed+=("${left_out[@]}")
	fi
fi
if [ ${#failed[@]} -gt 0 ]; then
	say "failed: ${failed[*]}"
	exit 1
fi
if [ ${#left_out[@]} -gt 0 ]; then
	exit $unreachable
fi
