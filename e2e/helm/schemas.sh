#!/usr/bin/env bash
# Writes the JSON schemas of Kubernetes' objects into .cache/kubernetes-schemas, as
# kubeconform reads them without a network, from a package of the Python registry. It
# ends with 75 if the package cannot be had, and says why.
#
#   schemas.sh VERSION…
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly out=.cache/kubernetes-schemas log=.cache/kubernetes-schemas.log
stamp="$* $(cat e2e/helm/requirements.txt e2e/helm/schemas.sh | sha256sum)"
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi
mkdir -p .cache
rm -rf "$out"
echo "helm: fetching the schemas of Kubernetes $*: 23 MB" >&2
if ! python3 -m venv "$out/venv" >"$log" 2>&1; then
	cat "$log" >&2
	echo "helm: no virtual environment; on Debian it needs the package python3-venv" >&2
	exit 1
fi
if ! "$out/venv/bin/python" -m pip download --disable-pip-version-check --no-input --require-hashes --no-deps \
	--only-binary :all: --dest "$out" -r e2e/helm/requirements.txt >>"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
		exit 1
	fi
	exit 75
fi
# The schemas name each other by URLs, which kubeconform would fetch.
python3 - "$out" "$@" <<'PYTHON'
import json, pathlib, sys, zipfile

out = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
    for version in sys.argv[2:]:
        folder = out / f"v{version}-strict"
        folder.mkdir()
        prefix = f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict/"
        names = [name for name in wheel.namelist() if name.startswith(prefix) and name.endswith(".json")]
        if not names:
            sys.exit(f"helm: the package has no schemas of Kubernetes {version}")
        for name in names:
            schema = json.loads(wheel.read(name).replace(b'"/api/_definitions.json#', b'"_definitions.json#'))
            schema.pop("$id", None)
            (folder / name.removeprefix(prefix)).write_text(json.dumps(schema))
PYTHON
rm -rf "$out/venv" "$out"/*.whl
echo "$stamp" >"$out/stamp"
