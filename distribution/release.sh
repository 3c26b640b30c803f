#!/usr/bin/env bash
# Makes a release of what is committed: in a clone, it sets the version, commits and
# tags, builds all that a release has, writes it to dist/VERSION, and checks it. The
# repository stays as it is; the last lines say what to push. See CONTRIBUTING.md.
#
#   distribution/release.sh VERSION
#
#   ARCHS   the processors to build for  (amd64 arm64)
#   IMAGES  no leaves out the images, where there is no docker or podman  (yes)
#   KEY     the private SSH key that signs the checksums, and with them every file; its
#           public key is beside it, as KEY.pub  (none: they are not signed)
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?"usage: distribution/release.sh VERSION"}
archs=${ARCHS:-amd64 arm64}
repository=$PWD source=$PWD/.cache/release/source out=$PWD/dist/$version

fail() {
	echo "release: $*" >&2
	exit 1
}
said() { echo "release: $* ($((SECONDS / 60)) min)"; }

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$ ]] || fail "VERSION is $version; it must be like 0.1.0 or 0.2.0-rc.1"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed; git status lists them"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version exists"
if [ -n "${KEY:-}" ]; then
	KEY=$(realpath "$KEY") && [ -r "$KEY" ] && [ -r "$KEY.pub" ] || fail "KEY is $KEY; it must name a private SSH key beside its .pub"
fi
unreleased=$(sed -n '/^## Unreleased$/,/^## [0-9]/p' CHANGELOG.md | sed '/^## /d')
[ -n "${unreleased//[[:space:]]/}" ] || fail "CHANGELOG.md has nothing under \"## Unreleased\""
for arch in $archs; do
	case $arch in
	"$(go env GOARCH)") ;;
	arm64) command -v aarch64-linux-gnu-gcc >/dev/null || fail "a C compiler for arm64 is missing: on Debian, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross; ARCHS=$(go env GOARCH) leaves it out" ;;
	*) fail "ARCHS has $arch; allowed are $(go env GOARCH) and arm64" ;;
	esac
done

# The release's commit and tags. Everything names the version: manifests, chart, images,
# documentation, and each module the others, so that another's manifest of ocb can name
# them by version.
rm -rf "$repository/.cache/release"
git clone --quiet . "$source"
cd "$source"
git config user.name "$(git -C "$repository" config user.name || git -C "$repository" log -1 --format=%an)"
git config user.email "$(git -C "$repository" config user.email || git -C "$repository" log -1 --format=%ae)"
mkdir .cache && ln -s "$repository/.cache/bin" .cache/bin
# make builds tools anew that are older than what names their versions.
find internal/tools -name 'go.*' -exec touch -d @0 {} +
before=$(sed -n 's/^  version: *//p' builder-config.yaml)
git grep -lF "$before" -- ':!*testdata*' ':!CHANGELOG.md' | xargs sed -i "s/${before//./\\.}/$version/g"
git ls-files '*go.mod' '*.md' 'distribution/*.go' builder-config.yaml builder-agent.yaml | xargs sed -i -E "s#(github\.com/otelcol-ml/otelcol-ml/[a-z/]+) v[0-9][0-9a-z.-]*#\1 v$version#"
sed -i -E "s/^version: .*/version: $version/" deploy/helm/otelcol-ml/Chart.yaml
sed -i "s/^## Unreleased\$/## $version - $(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%d)/" CHANGELOG.md
# The commit's time is that of what it releases, so that the same state gives the same bytes.
when=$(git log -1 --format=%cI)
GIT_AUTHOR_DATE=$when GIT_COMMITTER_DATE=$when git commit --quiet --all --message "Release $version"
git tag "v$version"
modules=$(sed -n 's/^\t\.\/\(.*\)$/\1/p' go.work | grep -v ^cmd/)
for module in $modules; do git tag "$module/v$version"; done
said "commit $(git rev-parse --short HEAD) and $(git tag --points-at HEAD | wc -l) tags"

rm -rf "$out"
mkdir -p "$out"
for arch in $archs; do
	packages=$repository/.cache/release/packages-$arch
	if [ "$arch" = "$(go env GOARCH)" ]; then
		make packages OUT="$packages" >&2
	else
		make image-programs-of-arch ARCH="$arch" >&2
		BIN=bin/$arch ARCH=$arch OUT=$packages distribution/package/build.sh >&2
	fi
	rm "$packages/SHA256SUMS"
	mv "$packages"/* "$out/"
	said "programs and packages for $arch"
done

.cache/bin/helm package deploy/helm/otelcol-ml --destination "$out" >/dev/null
said "chart"

if [ "${IMAGES:-yes}" != no ]; then
	make image-inputs >&2
	# The image for each processor has the same name, so that of this machine's comes last.
	own=$(go env GOARCH) ordered=
	for arch in $archs; do
		if [ "$arch" = "$own" ]; then ordered="$ordered $arch"; else ordered="$arch $ordered"; fi
	done
	for arch in $ordered; do
		for program in otelcol-ml otelcol-ml-agent; do
			PROGRAM=$program ARCH=$arch docker/image.sh >&2
			(
				. docker/engine.sh
				[ "$arch" = "$own" ] || "$engine" tag "$program:$version-$arch" "$program:$version"
				"$engine" save "$program:$version"
			) | gzip -n >"$out/$program-$version-image-linux-$arch.tar.gz"
		done
		said "images for $arch"
	done
fi

{
	echo "# otelcol-ml $version"
	echo
	sed -n "/^## $version - /,/^## /p" CHANGELOG.md | sed '/^## /d'
	echo
	echo "## To upgrade"
	echo
	sed -n '/^## Upgrade$/,/^## /p' docs/operations.md | sed '/^## /d'
} >"$out/RELEASE.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
if [ -n "${KEY:-}" ]; then
	ssh-keygen -q -Y sign -f "$KEY" -n file "$out/SHA256SUMS"
	said "signed"
fi

cd "$repository"
GOWORK=off go test -C e2e -count=1 -timeout 20m ./release/... -dist "$out" -source "$source" -version "$version" -archs "${archs// /,}" -key "${KEY:+$KEY.pub}" -images="$([ "${IMAGES:-yes}" = no ] && echo false || echo true)"
said "checked"
du -h --apparent-size "$out"/*
cat <<END
release: dist/$version is whole. To publish it, push its commit and tags:
  git fetch .cache/release/source 'refs/tags/*:refs/tags/*'
  git push origin $(cd "$source" && git tag --points-at HEAD | tr '\n' ' ')
END
