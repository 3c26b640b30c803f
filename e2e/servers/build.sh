#!/bin/sh
# build.sh [SERVER…] builds the servers that the end-to-end tests talk to, Prometheus,
# Alertmanager and Jaeger unless others are named, from their Go modules into .cache/servers of
# the repository. kubernetes, coredns and kube-router are only for `make e2e-cluster`. Each is
# built once: a stamp beside the binaries names what they were built from, so that a change of
# version, of build tags or of the Go release builds again.
#
# It needs only Go. It prints how long a build may take and how far it is.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=$(CDPATH='' cd -- "$here/../.." && pwd)/.cache/servers
progress=$(CDPATH='' cd -- "$here/../.." && pwd)/internal/tools/progress.sh
mkdir -p "$out"

# The repository's workspace must not choose the servers' dependencies, and
# pure Go binaries build without a C compiler.
export GOWORK=off CGO_ENABLED=0
go_version=$(go env GOVERSION)

# version MODULE prints the version that the go.mod in the current folder pins.
version() {
	awk -v module="$1" '
		$1 == "require" && $2 == module { print $3 }
		$1 == module { print $2 }
	' go.mod | head -n 1
}

# fresh STAMP WANTED BINARY… succeeds if nothing has to be built.
fresh() {
	stamp=$1 wanted=$2
	shift 2
	for binary in "$@"; do
		[ -x "$out/$binary" ] || return 1
	done
	[ -f "$out/$stamp" ] && [ "$(cat "$out/$stamp")" = "$wanted" ]
}

# build_go PACKAGE BINARY FLAG… builds a package of the module in the current
# folder. The binary appears under its name only when it is whole.
build_go() {
	package=$1 binary=$2
	shift 2
	"$progress" go "$binary" build -mod=readonly -trimpath -buildvcs=false "$@" -o "$out/$binary.new" "$package"
	mv -f "$out/$binary.new" "$out/$binary"
}

build_prometheus() (
	cd "$here/prometheus"
	module=github.com/prometheus/prometheus
	version=$(version $module)
	tags=remove_all_sd,netgo
	built_from="$module $version $tags $go_version"
	if fresh prometheus.stamp "$built_from" prometheus promtool; then
		return
	fi
	echo "servers: building Prometheus ($module $version), once: 3 to 5 minutes on two cores"
	info=github.com/prometheus/common/version
	build_go $module/cmd/prometheus prometheus -tags "$tags" -ldflags "-s -w -X $info.Version=$version"
	build_go $module/cmd/promtool promtool -tags "$tags" -ldflags "-s -w -X $info.Version=$version"
	echo "$built_from" >"$out/prometheus.stamp"
)

# Alertmanager's module lacks the files of its web interface, which its program
# embeds, so it is built in a copy of its folder that has a page without content.
build_alertmanager() (
	cd "$here/alertmanager"
	module=github.com/prometheus/alertmanager
	version=$(version $module)
	built_from="$module $version $go_version"
	if fresh alertmanager.stamp "$built_from" alertmanager; then
		return
	fi
	echo "servers: building Alertmanager ($module $version), once: 1 to 2 minutes on two cores"
	go mod download "$module@$version"
	source=$out/alertmanager.source
	rm -rf "$source"
	cp -R "$(go list -mod=readonly -m -f '{{.Dir}}' $module)" "$source"
	chmod -R u+w "$source"
	mkdir -p "$source/ui/app/dist"
	: >"$source/ui/app/dist/index.html"
	cd "$source"
	build_go ./cmd/alertmanager alertmanager -tags netgo -ldflags "-s -w -X github.com/prometheus/common/version.Version=$version"
	cd "$out"
	rm -rf "$source"
	echo "$built_from" >"$out/alertmanager.stamp"
)

# Jaeger's go.mod has replacements that count only where it is the main module,
# so it is built inside its own, read-only folder of the module cache.
build_jaeger() (
	cd "$here/jaeger"
	module=github.com/jaegertracing/jaeger
	version=$(version $module)
	built_from="$module $version $go_version"
	if fresh jaeger.stamp "$built_from" jaeger; then
		return
	fi
	echo "servers: building Jaeger ($module $version), once: 4 to 6 minutes on two cores"
	go mod download "$module@$version"
	cd "$(go list -mod=readonly -m -f '{{.Dir}}' $module)"
	build_go ./cmd/jaeger jaeger -ldflags "-s -w -X $module/internal/version.latestVersion=$version"
	echo "$built_from" >"$out/jaeger.stamp"
)

# The parts of Kubernetes are one program, so that they are linked once.
build_kubernetes() (
	cd "$here/kubernetes"
	module=k8s.io/kubernetes
	version=$(version $module)
	built_from="$module $version $(cksum <main.go) $go_version"
	if fresh kubernetes.stamp "$built_from" kubernetes; then
		return
	fi
	echo "servers: building Kubernetes ($version), once: 8 to 10 minutes on two cores"
	minor=${version#v1.}
	info=k8s.io/component-base/version
	build_go . kubernetes -ldflags "-s -w -X $info.gitVersion=$version -X $info.gitMajor=1 -X $info.gitMinor=${minor%%.*}"
	echo "$built_from" >"$out/kubernetes.stamp"
)

build_coredns() (
	cd "$here/coredns"
	module=github.com/coredns/coredns
	version=$(version $module)
	built_from="$module $version $(cksum <main.go) $go_version"
	if fresh coredns.stamp "$built_from" coredns; then
		return
	fi
	echo "servers: building CoreDNS ($version), once: 1 to 2 minutes on two cores"
	build_go . coredns -ldflags "-s -w"
	echo "$built_from" >"$out/coredns.stamp"
)

build_kube_router() (
	cd "$here/kube-router"
	module=github.com/cloudnativelabs/kube-router/v2
	version=$(version $module)
	built_from="$module $version $(cksum <main.go) $go_version"
	if fresh kube-router.stamp "$built_from" kube-router; then
		return
	fi
	echo "servers: building kube-router ($version), once: 3 to 7 minutes on two cores"
	build_go . kube-router -ldflags "-s -w"
	echo "$built_from" >"$out/kube-router.stamp"
)

[ $# -gt 0 ] || set -- prometheus alertmanager jaeger
for server in "$@"; do
	"build_$(echo "$server" | tr - _)"
done
