#!/usr/bin/env bash
# Fetches Apache Kafka from Maven Central into .cache/servers/kafka, once: the jars
# that pom.xml asks for, with the hashes of jars.sha256. Where Java or Maven is
# missing and this runs as root or may use sudo without a password, it installs
# Debian's. It ends with 75 where these cannot be had, and says why.
#
# After a change of pom.xml, fetch.sh hashes writes jars.sha256.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../../.." && pwd)/.cache/servers
out=$cache/kafka

works() { java -version >/dev/null 2>&1 && mvn --version >/dev/null 2>&1; }
complete() { (cd "$1" 2>/dev/null && sha256sum -c --quiet --strict "$here/jars.sha256" 2>/dev/null); }

if [ "${1:-}" = hashes ]; then
	: >"$here/jars.sha256"
elif complete "$out" && java -version >/dev/null 2>&1; then
	exit 0
fi
mkdir -p "$cache"

packages="default-jre-headless maven"
if ! works; then
	become=()
	if [ "$(id -u)" -ne 0 ]; then
		become=(sudo -n)
	fi
	if ! command -v apt-get >/dev/null || ! "${become[@]}" true 2>/dev/null; then
		echo "kafka: no Java or no Maven, and to install them takes apt-get and root: $packages" >&2
		exit 75
	fi
	echo "kafka: installing $packages: about 50 MB"
	# shellcheck disable=SC2086 # one word a package
	("${become[@]}" apt-get update && "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages) >"$cache/java.log" 2>&1 </dev/null ||
		tail -n 20 "$cache/java.log" >&2
	works || { echo "kafka: Java and Maven do not work after that" >&2; exit 75; }
fi

echo "kafka: fetching Apache Kafka from Maven Central, 44 MB, once: about half a minute"
rm -rf "$out" "$out.new"
# What Maven itself needs goes into a folder that is removed again.
mvn -q -B -ntp --strict-checksums -f "$here/pom.xml" "-Dmaven.repo.local=$out.new/repository" \
	org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
	-DincludeScope=runtime "-DoutputDirectory=$out.new/jars" || { rm -rf "$out.new"; exit 75; }
cd "$out.new/jars" || exit 1
[ "${1:-}" != hashes ] || sha256sum -- *.jar >"$here/jars.sha256"
complete . || { echo "kafka: the jars differ from jars.sha256" >&2; exit 1; }
mv "$out.new/jars" "$out"
rm -rf "$out.new"
