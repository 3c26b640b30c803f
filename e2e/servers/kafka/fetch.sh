#!/usr/bin/env bash
# Fetches Apache Kafka from Maven Central into .cache/servers/kafka, once: the jars
# that pom.xml asks for, whose hashes are in jars.sha256. Where Java or Maven is
# missing and this runs as root or may use sudo without a password, it installs
# Debian's. It ends with 75 where Java, Maven or the jars cannot be had, and says
# why. After a change of pom.xml, write the new hashes:
#
#   (cd .cache/servers/kafka && sha256sum *.jar) >e2e/servers/kafka/jars.sha256
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../../.." && pwd)/.cache/servers
out=$cache/kafka

works() { java -version >/dev/null 2>&1; }
complete() { (cd "$1" 2>/dev/null && sha256sum -c --quiet --strict "$here/jars.sha256" 2>/dev/null); }

needed=""
works || needed="default-jre-headless"
complete "$out" || command -v mvn >/dev/null || needed="$needed maven"
if [ -n "$needed" ]; then
	become=()
	if [ "$(id -u)" -ne 0 ]; then
		become=(sudo -n)
	fi
	if ! command -v apt-get >/dev/null || ! "${become[@]}" true 2>/dev/null; then
		echo "kafka: not installed, and to install it takes apt-get and root: $needed" >&2
		exit 75
	fi
	mkdir -p "$cache"
	echo "kafka: installing $needed"
	# shellcheck disable=SC2086 # one word a package
	("${become[@]}" apt-get update && "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $needed) >"$cache/java.log" 2>&1 </dev/null ||
		tail -n 20 "$cache/java.log" >&2
	works || { echo "kafka: Java does not work after that" >&2; exit 75; }
fi
complete "$out" && exit 0

echo "kafka: fetching Apache Kafka from Maven Central, 44 MB, once: about half a minute"
rm -rf "$out" "$out.new"
mkdir -p "$cache"
# Maven keeps what it fetches in a folder of its own, which is removed again.
mvn -q -B -ntp --strict-checksums -f "$here/pom.xml" "-Dmaven.repo.local=$out.new/repository" \
	org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
	-DincludeScope=runtime "-DoutputDirectory=$out.new/jars" || { rm -rf "$out.new"; exit 75; }
(cd "$out.new/jars" && sha256sum -c --quiet --strict "$here/jars.sha256") || exit 1
mv "$out.new/jars" "$out"
rm -rf "$out.new"
