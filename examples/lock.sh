#!/usr/bin/env bash
# Writes examples/NAME/requirements.txt: every package that requirements.in
# needs, directly or not, pinned, with the hashes of all its files.
#
#   examples/lock.sh NAME…
#
# REQUIREMENTS=e2e/backends has it write e2e/backends/NAME/requirements.txt instead.
#
# examples/NAME/overrides.txt, where there is one, replaces what packages say
# that they need: 'torch; python_version < "0"' leaves torch out.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
tool=$root/.cache/venvs/lock
from=${REQUIREMENTS:-examples}
readonly root tool from
readonly uv_version=0.13.8

if [ "$("$tool/bin/uv" --version 2>/dev/null | awk '{print $2}')" != "$uv_version" ]; then
	echo "examples: installing uv $uv_version into .cache/venvs/lock" >&2
	rm -rf "$tool"
	python3 -m venv "$tool"
	"$tool/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
fi

for name in "$@"; do
	cd "$root/$from/$name"
	overrides=()
	if [ -f overrides.txt ]; then
		overrides=(--override overrides.txt)
	fi
	"$tool/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "${REQUIREMENTS:+REQUIREMENTS=$REQUIREMENTS }examples/lock.sh $name" \
		${overrides[@]+"${overrides[@]}"} --output-file requirements.txt requirements.in
	if grep -nE '://|--index|--find-links' requirements.txt; then
		echo "examples: $name/requirements.txt names a place to fetch from" >&2
		exit 1
	fi
done
