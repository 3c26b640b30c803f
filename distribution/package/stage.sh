#!/usr/bin/env bash
# Copies this folder, as the packages of a program have it: otelcol-ml-agent has another
# program and manual page behind the same service, and no gateway.
#
#   distribution/package/stage.sh PROGRAM FOLDER
set -euo pipefail
source=$(dirname "$0") program=${1:?"usage: stage.sh PROGRAM FOLDER"} folder=${2:?}
cp -R "$source" "$folder"
if [ "$program" = otelcol-ml-agent ]; then
	rm "$folder"/*gateway*
	find "$folder" -type f -exec sed -i -f "$source/agent.sed" {} +
fi
# nfpm does not expand paths of scripts.
sed -i "s|[$]{OWN}|$folder|" "$folder/nfpm.yaml"
