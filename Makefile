# otelcol-ml: build, test and run. `make help` lists the targets.
#
# Needed on the machine: Go 1.26 or newer, a C compiler, make, git, python3.
# Everything else is downloaded into Go's caches and into .cache/, which git
# ignores.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE  := $(CURDIR)/.cache
BIN    := $(CURDIR)/bin
TOOLS  := $(CACHE)/bin
# The go command with a count of what it has compiled.
GO_SHOWN := $(CURDIR)/internal/tools/progress.sh go

# The components and what they share: the modules of go.work.
MODULES := $(shell sed -n 's/^\t\.\/\(.*\)$$/\1/p' go.work)
# Modules outside of the workspace, with their own versions. ocb writes that of
# distribution.
APART   := e2e internal/tools internal/tools/helm internal/tools/image internal/tools/lint internal/tools/package
# The client programs of the end-to-end tests.
EXAMPLES := $(patsubst examples/%/requirements.txt,%,$(wildcard examples/*/requirements.txt))
# Modules with generated code: those with a metadata.yaml, the vocabulary page,
# the dashboards, and the pages of mdatagen, which come last.
GENERATED := $(patsubst %/metadata.yaml,%,$(wildcard */*/metadata.yaml)) internal/mlattr cmd/allowlist cmd/dashboards cmd/references

# The Helm chart. It has copies of files outside of it.
CHART   := deploy/helm/otelcol-ml

# ocb applies build_tags only when it compiles. The manifest remains their only
# source.
TAGS    := $(shell sed -n 's/^  build_tags: *//p' builder-config.yaml)

# NVML is loaded at run time through cgo. Its header marks most calls deprecated,
# which is irrelevant here.
export CGO_ENABLED := 1
export CGO_CFLAGS  := -g -O2 -Wno-deprecated-declarations
# The build must not depend on the machine's toolchain settings.
export GOTOOLCHAIN := local

.PHONY: help
help: ## List the targets
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: needs
needs:
	@for tool in go gcc git python3; do command -v $$tool >/dev/null || { echo "make: $$tool is missing; the build needs Go 1.26 or newer, gcc, make, git and python3" >&2; exit 1; }; done
	@go version | awk '{v=substr($$3,3); split(v,a,"."); if (a[1]<1 || (a[1]==1 && a[2]+0<26)) {print "make: Go " v " is too old; 1.26 or newer is needed" > "/dev/stderr"; exit 1}}'

.PHONY: build
build: needs ## Build bin/otelcol-ml, bin/otelcol-ml-agent, bin/mlgen, bin/mldemo and bin/queuecheck
	@if [ ! -x $(BIN)/otelcol-ml ]; then echo "Building bin/otelcol-ml: 5 to 8 minutes on two cores the first time, later seconds."; fi
	@$(MAKE) collector demo-programs queuecheck
	@echo "bin/otelcol-ml $$($(BIN)/otelcol-ml --version | awk '{print $$NF}') is built."

.PHONY: collector
collector:
	@mkdir -p $(BIN)
	@cd distribution && GOWORK=off $(GO_SHOWN) bin/otelcol-ml build -trimpath -tags "$(TAGS)" -ldflags "-s -w" -o $(BIN)/otelcol-ml .

# The smaller collector of builder-agent.yaml.
.PHONY: agent
agent:
	@mkdir -p $(BIN)
	@cd distribution/agent && GOWORK=off $(GO_SHOWN) bin/otelcol-ml-agent build -trimpath -pgo ../default.pgo -tags "$$(sed -n 's/^  build_tags: *//p' $(CURDIR)/builder-agent.yaml)" -ldflags "-s -w" -o $(BIN)/otelcol-ml-agent .

# What make demo runs: the smaller collector, which compiles in half the time.
.PHONY: demo-programs
demo-programs: agent
	@$(GO_SHOWN) bin/mlgen build -trimpath -o $(BIN)/mlgen ./cmd/mlgen
	@$(GO_SHOWN) bin/mldemo build -trimpath -o $(BIN)/mldemo ./cmd/mldemo

# Static, because the image contains it too.
.PHONY: queuecheck
queuecheck:
	@cd cmd/queuecheck && CGO_ENABLED=0 GOWORK=off $(GO_SHOWN) bin/queuecheck build -trimpath -ldflags "-s -w" -o $(BIN)/queuecheck .

.PHONY: demo
demo: needs ## Run collector and simulated clients here: no GPU, container or account needed
	@if [ ! -x $(BIN)/otelcol-ml-agent ]; then echo "Building bin/otelcol-ml-agent: 3 to 4 minutes on two cores the first time, later seconds."; fi
	@$(MAKE) demo-programs
	@exec $(BIN)/mldemo --collector $(BIN)/otelcol-ml-agent --mlgen $(BIN)/mlgen --config distribution/config/demo.yaml --dir demo-output

# More tests at once than there are cores: most wait for Python or for a collector.
.PHONY: test
test: build ## Test every module, what has goroutines with the race detector, then the built binary
	@echo "Testing the modules, what has goroutines with the race detector. The first time, their dependencies are compiled for it: about 3 minutes on two cores."
	@race=$$(internal/tools/racing.sh race); go test -race -parallel 4 -timeout 30m $$race
	@plain=$$(internal/tools/racing.sh plain); go test -timeout 30m $$plain
	@echo "Testing bin/otelcol-ml."
	@GOWORK=off go test -C e2e -count=1 -timeout 30m -parallel 6 ./harness/... ./collectors/... ./dashboards/... ./documents/... ./bench/... ./genai/... ./trainers/... ./smoke/...

.PHONY: lint
lint: needs $(TOOLS)/golangci-lint ## Run linters; check that go.mod files are tidy and generated code is up to date
	@for m in $(MODULES) e2e; do echo "lint $$m"; (cd $$m && GOWORK=off $(TOOLS)/golangci-lint run ./...) || exit 1; done
	@for m in $(MODULES) $(APART); do (cd $$m && GOWORK=off go mod tidy -diff >/dev/null) || { echo "lint: $$m/go.mod is not tidy: run make tidy" >&2; exit 1; }; done
	@for m in $(MODULES); do GOWORK=off go vet -C $$m ./... || exit 1; done
	@before=$$(git status --porcelain; git diff | sha256sum); $(MAKE) generate >/dev/null; after=$$(git status --porcelain; git diff | sha256sum); \
	if [ "$$before" != "$$after" ]; then git --no-pager diff --stat; echo "lint: make generate changed files: run it and commit what it writes" >&2; exit 1; fi

.PHONY: e2e
e2e: build $(BIN) ## Test the built binary with real Jaeger and Prometheus and all scenarios
	@e2e/servers/build.sh
	@GOWORK=off go test -C e2e -count=1 -timeout 30m -parallel 8 . ./opamp/... ./sample/... ./stacks/... ./upgrade/... ./view/...

.PHONY: e2e-clients
e2e-clients: build ## Test the built binary with real client programs, the examples, and the archive
	@e2e/servers/build.sh
	@status=0; examples/venv.sh $(EXAMPLES) || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-clients was LEFT OUT: no Python package registry can be reached" >&2; exit 0; fi; \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 30m ./clients/... ./archive/... && \
	REPRO_TENSORS=required GOWORK=off go test -C processor/reprogenprocessor -count=1 -timeout 30m -run 'Tensor|Shape|Client' .

# Where there is no Python package registry, this says so; CI fails.
.PHONY: archive-sizes
archive-sizes: build ## Measure an archive of SPANS (default 10 million) spans; UPDATE=1 writes the tables of docs/evidence/performance.md
	@status=0; examples/venv.sh archive || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: archive-sizes was LEFT OUT: no Python package registry can be reached" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 4h -v -run TestSizes ./archive/ -spans $(or $(SPANS),10000000) $(if $(UPDATE),-update); fi

# It installs some 500 MB of packages into .cache/venvs.
.PHONY: e2e-clients-long
e2e-clients-long: needs ## Run the LLM clients of e2e/genai again and compare what they send with what they were served
	@python3 e2e/genai/record.py --into $(CACHE)/genai
	@GOWORK=off go test -C e2e -count=1 ./genai/... -recordings $(CACHE)/genai

# Where there is no Chromium and none can be installed, this says so; CI fails.
.PHONY: e2e-page
e2e-page: build ## Test the live page of the built binary in a real browser, Debian's Chromium
	@status=0; e2e/page/chromium.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-page was LEFT OUT: there is no Chromium here" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C exporter/mlviewexporter -c -trimpath -o $(BIN)/viewfixtures ./internal/page && \
	GOWORK=off go test -C e2e -count=1 -timeout 10m ./page/...; fi

# The programs and licenses of the image. A stage of docker/Dockerfile runs this
# target too.
.PHONY: image-inputs image-programs image-papers
image-inputs: image-programs image-papers
image-programs: collector agent queuecheck
	@cd cmd/healthcheck && CGO_ENABLED=0 GOWORK=off $(GO_SHOWN) bin/healthcheck build -trimpath -ldflags "-s -w" -o $(BIN)/healthcheck .
image-papers: $(TOOLS)/syft $(BIN)/licenses/go/LICENSE
	@cp $(TOOLS)/syft $(BIN)/syft

# ARCH if that is not this machine's processor, whose programs are in bin/ARCH then.
FOREIGN = $(filter-out $(shell go env GOARCH),$(ARCH))

.PHONY: image image-programs-of-arch
image: $(if $(ARCH),image-programs-of-arch image-papers,build image-inputs) ## Build the image otelcol-ml:<version> with docker or podman; ARCH=arm64 for that processor; see docs/install.md
	@docker/image.sh
image-programs-of-arch:
	@$(MAKE) image-programs $(if $(FOREIGN),BIN=$(BIN)/$(ARCH) GOARCH=$(ARCH) CC=$(patsubst amd64,x86_64,$(patsubst arm64,aarch64,$(ARCH)))-linux-gnu-gcc)

.PHONY: e2e-image
e2e-image: image ## Test the image in the stack of docker/compose.yaml
	@e2e/servers/build.sh
	@e2e/servers/images.sh
	@PROGRAM=otelcol-ml-agent docker/image.sh
	@GOWORK=off go test -C e2e -count=1 -timeout 30m -v ./image/...

.PHONY: packages
packages: build $(TOOLS)/nfpm $(TOOLS)/syft $(BIN)/licenses/go/LICENSE ## Write dist/: packages deb, rpm and tar.gz, checksums and SBOM; see docs/install.md
	@distribution/package/build.sh

# What it makes lies in .cache/release and dist/VERSION; nothing is pushed.
.PHONY: release
release: needs $(TOOLS)/builder $(TOOLS)/helm $(TOOLS)/nfpm $(TOOLS)/syft $(TOOLS)/go-licenses ## Build and check a release, as make release VERSION=0.1.0; see CONTRIBUTING.md
	@distribution/release.sh $(VERSION)

# The version that main is before, with an engine and a compiler installed for it.
.PHONY: e2e-release
e2e-release:
	@status=0; e2e/packages/engine.sh && e2e/release/compiler.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-release was LEFT OUT: there is no container engine or no C compiler for arm64 here" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && rm -f .cache/release-key* && ssh-keygen -q -t ed25519 -N '' -C test -f .cache/release-key && KEY=.cache/release-key $(MAKE) release VERSION=$$(sed -n 's/^  version: *\([0-9.]*\).*/\1/p' builder-config.yaml); fi

.PHONY: e2e-install
e2e-install: packages ## Install, upgrade and remove the packages in an empty Debian with systemd; needs root
	@e2e/packages/install.sh

.PHONY: e2e-faults
e2e-faults: build ## Test the built binary under faults; UPDATE=1 writes the table of docs/evidence/reliability.md
	@GOWORK=off go test -C e2e -count=1 -timeout 30m -parallel 2 ./faults/... $(if $(UPDATE),-update)

# The fast fault tests, and a small fleet, for make check.
.PHONY: e2e-faults-fast
e2e-faults-fast: build
	@e2e/servers/build.sh
	@GOWORK=off go test -C e2e -count=1 -timeout 10m -parallel 2 -short ./faults/... ./scale/...

# It needs ip (iproute2) and user namespaces.
.PHONY: e2e-scale
e2e-scale: build ## Test a fleet of agents and gateways under faults; UPDATE=1 writes a table of docs/evidence/scale.md
	@e2e/servers/build.sh
	@GOWORK=off go test -C e2e -count=1 -timeout 30m -v ./scale/... $(if $(UPDATE),-update)

# Where there is no Java and none can be installed, this says so; CI fails.
.PHONY: e2e-kafka
e2e-kafka: build ## Test the built binary with a real Apache Kafka between agent and gateways, each of which is killed
	@status=0; e2e/servers/kafka/fetch.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-kafka was LEFT OUT: there is no Apache Kafka here" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 30m -parallel 1 ./kafka/...; fi

# It installs some 1.1 GB of packages into .cache/venvs. Where there is no Python package
# registry, this says so; CI fails.
.PHONY: e2e-backends
e2e-backends: build ## Ask real back ends, Phoenix and MLflow, what they show of LLM clients; UPDATE=1 writes the tables of docs/llm-backends.md
	@status=0; REQUIREMENTS=e2e/backends examples/venv.sh phoenix mlflow || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-backends was LEFT OUT: no Python package registry can be reached" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 30m ./backends/... $(if $(UPDATE),-update); fi

# Without WEAVER the rules of the registry are checked by this repository's own code alone.
.PHONY: e2e-registry
e2e-registry: build ## Hold what is written of recordings against the registry of names; WEAVER=… has OpenTelemetry Weaver check, too
	@[ -n "$(WEAVER)" ] || echo "make: e2e-registry: OpenTelemetry Weaver was LEFT OUT: WEAVER names no executable" >&2
	@GOWORK=off go test -C e2e -count=1 -timeout 30m ./registry/... $(if $(WEAVER),-weaver $(WEAVER)) $(if $(CONVENTIONS),-conventions $(CONVENTIONS))

# Where PYTHON has no PyTorch of 2.8 or newer, this says so; CI fails.
.PHONY: e2e-hangs
e2e-hangs: build ## Test the built binary beside eight processes of PyTorch's Gloo that hang in five ways; PYTHON= names a Python with PyTorch
	@if $(or $(PYTHON),python3) -c 'from torch._C._distributed_c10d import _dump_fr_trace' 2>/dev/null; then \
	GOWORK=off go test -C e2e -count=1 -timeout 40m ./hangs/... -python $$(command -v $(or $(PYTHON),python3)); else \
	echo "make: e2e-hangs was LEFT OUT: $(or $(PYTHON),python3) has no PyTorch 2.8 or newer" >&2; [ "$${CI:-}" != true ]; fi

# The detectors allocate much and keep little.
ANOMALIES := GOGC=400 GOWORK=off go test -C e2e -count=1

.PHONY: anomalies
anomalies: needs ## Measure the problems that ml_metrics reports, in virtual time; UPDATE=1 writes docs/evidence/anomalies.md
	@$(ANOMALIES) -timeout 4h ./anomalies/... $(if $(UPDATE),-update)

# A part of it, for make check.
.PHONY: anomalies-fast
anomalies-fast: needs
	@$(ANOMALIES) -timeout 15m -short ./anomalies/...

.PHONY: thresholds
thresholds: needs ## Replay the spans in ARCHIVE with the thresholds OLD and NEW (slow=1.1,failing=0.1), and compare the problems and the VERDICTS of those in RECORDS
	@$(ANOMALIES) -timeout 0 -v ./anomalies -run '^TestThresholds$$' -archive $(abspath $(ARCHIVE)) $(if $(OLD),-old $(OLD)) $(if $(NEW),-new $(NEW)) \
		$(if $(VERDICTS),-verdicts $(abspath $(VERDICTS))) $(if $(RECORDS),-records $(abspath $(RECORDS)))

# Where the schemas of Kubernetes cannot be had, this says so; CI fails.
.PHONY: e2e-helm
e2e-helm: build $(TOOLS)/helm $(TOOLS)/kubeconform ## Test the Helm chart: what it renders, and the built binary with each pod's configuration
	@status=0; e2e/helm/schemas.sh 1.30.0 1.37.0 || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-helm was LEFT OUT: no Python package registry can be reached" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 10m ./helm/...; fi

# Where no containers can run, this says so; CI fails.
.PHONY: e2e-cluster
e2e-cluster: $(TOOLS)/helm ## Install the Helm chart on a real cluster of one node; needs root
	@status=0; e2e/packages/engine.sh && e2e/cluster/packages.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-cluster was LEFT OUT: this machine cannot run containers" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && $(MAKE) image && e2e/servers/build.sh jaeger kubernetes coredns kube-router && e2e/cluster/images.sh && \
	GOWORK=off go test -C e2e -count=1 -timeout 20m -v ./cluster/...; fi

.PHONY: e2e-packages
e2e-packages: ## Try the package lists of the documentation in an empty Debian; needs root
	@e2e/packages/try.sh

# Where there is no Chromium or no Node.js and none can be installed, or no package
# registry can be reached, this says so; CI fails.
.PHONY: e2e-dashboards
e2e-dashboards: build ## Draw the dashboards with the packages that Grafana draws with, in Chromium; UPDATE=1 writes docs/images/dashboard-*.png
	@e2e/servers/build.sh prometheus
	@status=0; e2e/page/chromium.sh && e2e/grafana/page.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-dashboards was LEFT OUT: there is no Chromium or no Node.js here, or no package registry" >&2; [ "$${CI:-}" != true ]; else \
	[ $$status -eq 0 ] && GOWORK=off go test -C e2e -count=1 -timeout 30m ./grafana/... $(if $(UPDATE),-update); fi

.PHONY: check
check: test lint e2e e2e-faults-fast anomalies-fast e2e-clients e2e-page ## Run all tests and linters of CI

# e2e-image, after installing a container engine if that is possible.
.PHONY: e2e-image-installed
e2e-image-installed:
	@status=0; e2e/packages/engine.sh || status=$$?; \
	if [ $$status -eq 75 ]; then echo "make: e2e-image was LEFT OUT: no container engine works here" >&2; [ "$${CI:-}" != true ]; else [ $$status -eq 0 ] && $(MAKE) e2e-image; fi

# Runs each part, even if an earlier one fails.
.PHONY: check-long
check-long: ## Run make check, the LLM clients, all fault tests, hangs of PyTorch, a fleet, Kafka, LLM back ends, make anomalies, the sizes of archives, the registry of names, the dashboards, the Helm chart, a cluster, package lists, the packages, the image, a release and fuzz tests
	@status=0; for target in check e2e-clients-long e2e-faults e2e-hangs e2e-scale e2e-kafka e2e-backends anomalies archive-sizes e2e-registry e2e-dashboards e2e-helm e2e-cluster e2e-packages e2e-install e2e-image-installed e2e-release fuzz; do \
	  echo "make: check-long: $$target"; $(MAKE) $$target || { status=1; echo "make: check-long: $$target FAILED" >&2; }; done; exit $$status

.PHONY: generate
generate: needs $(TOOLS)/builder $(TOOLS)/mdatagen ## Write distribution/ (ocb), metadata (mdatagen), reference pages and dashboards
	@for m in $(GENERATED); do (cd $$m && PATH=$(TOOLS):$$PATH GOWORK=off go generate ./...) || exit 1; done
	@cp distribution/config/{agent,agent-gateway,gateway,to-fleet,fleet,logs-kubernetes}.yaml docker/collector/gpu.yaml $(CHART)/files/
	@cp docker/prometheus/rules/*.yaml $(CHART)/files/rules/
	@for manifest in builder-config.yaml builder-agent.yaml; do GOWORK=off $(TOOLS)/builder --config $$manifest --skip-compilation >$(CACHE)/builder.log 2>&1 || { cat $(CACHE)/builder.log >&2; exit 1; }; done

.PHONY: tidy
tidy: needs ## Format code and tidy every go.mod
	@gofmt -l -w $(MODULES) e2e
	@for m in $(MODULES) $(APART); do (cd $$m && GOWORK=off go mod tidy) || exit 1; done

.PHONY: fuzz
fuzz: needs ## Run every fuzz test for FUZZTIME (default 20s) each
	@for m in $(MODULES); do (cd $$m && for p in $$(GOWORK=off go list ./...); do \
	  for f in $$(GOWORK=off go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do echo "$$p $$f"; GOWORK=off go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(or $(FUZZTIME),20s) -fuzzminimizetime 10x $$p || exit 1; done; done) || exit 1; done

.PHONY: bench
bench: needs ## Run every benchmark: COUNT (default 3) processes each, BENCHTIME (default 1s); see docs/evidence/performance.md
	@for m in $(MODULES); do (cd $$m && for p in $$(GOWORK=off go list ./...); do \
	  if GOWORK=off go test -list '^Benchmark' $$p | grep -q '^Benchmark'; then for i in $$(seq $(or $(COUNT),3)); do GOWORK=off go test -run '^$$' -bench . -benchmem -benchtime $(or $(BENCHTIME),1s) $$p || exit 1; done; fi; done) || exit 1; done

# The manifest without the components of this project.
STOCK := $(CACHE)/stock
$(STOCK)/otelcol: builder-config.yaml $(TOOLS)/builder
	@mkdir -p $(STOCK)
	@sed -e '/otelcol-ml\/otelcol-ml\/[a-z]*\//d' -e '/^ *path: /d' -e 's#output_path: .*#output_path: $(STOCK)/source#' \
	  -e 's#^\(  - gomod: .*/provider/\)env\(provider .*\)#&\n\1file\2#' builder-config.yaml >$(STOCK)/builder-config.yaml
	@GOWORK=off $(TOOLS)/builder --config $(STOCK)/builder-config.yaml --skip-compilation >$(STOCK)/builder.log 2>&1 || { cat $(STOCK)/builder.log >&2; exit 1; }
	@cd $(STOCK)/source && GOWORK=off $(GO_SHOWN) otelcol build -trimpath -tags "$(TAGS)" -ldflags "-s -w" -o $@ .

BENCH := cd e2e && GOWORK=off go run ./bench -rounds $(or $(ROUNDS),12)
.PHONY: bench-collector
bench-collector: build $(STOCK)/otelcol ## Measure what a whole collector costs, by turns (ROUNDS, default 12): spans, points, log records, scrapes, rising loads, cores; see docs/evidence/performance.md
	@$(BENCH) -stock $(STOCK)/otelcol
	@$(BENCH) -stock $(STOCK)/otelcol -environment GOGC=200,GOMEMLIMIT=614MiB
	@$(BENCH) -signal points
	@$(BENCH) -signal logs
	@$(BENCH) -series 100000
	@$(BENCH) -rising
	@$(BENCH) -cores

# The compiler optimizes bin/otelcol-ml by it. docs/evidence/performance.md says what it gives.
.PHONY: profile
profile: build ## Profile the collector under load: writes distribution/default.pgo
	@cd e2e && GOWORK=off go run ./bench -profile ../distribution/default.pgo

.PHONY: bench-scale
bench-scale: build ## Measure what a span and a run cost agents and gateways; UPDATE=1 writes the tables of docs/evidence/scale.md
	@cd e2e && GOWORK=off go run ./bench/scale $(if $(UPDATE),-update)

# bench-page measures; it asserts nothing.
.PHONY: bench-page
bench-page: build ## Measure the live page of 500 runs and 512 GPUs with 32 open pages; see docs/evidence/performance.md
	@e2e/page/chromium.sh
	@cd e2e && GOWORK=off go run ./page/load

.PHONY: pictures
pictures: build ## Draw docs/images/page*.png, the live page of simulated workloads, and all its views into .cache/pictures
	@e2e/page/chromium.sh
	@cd e2e && GOWORK=off go run ./page/pictures

.PHONY: clean
clean: ## Remove bin/, dist/, demo-output/ and the tools and servers in .cache/
	@rm -rf $(BIN) $(CACHE) dist demo-output

$(BIN):
	@mkdir -p $@

$(TOOLS)/builder $(TOOLS)/mdatagen: internal/tools/go.mod internal/tools/go.sum
	@echo "Building ocb and mdatagen into .cache/bin: about half a minute."
	@cd internal/tools && GOWORK=off GOBIN=$(TOOLS) $(GO_SHOWN) "ocb and mdatagen" install tool
	@touch $(TOOLS)/builder $(TOOLS)/mdatagen

$(TOOLS)/syft $(TOOLS)/go-licenses: internal/tools/image/go.mod internal/tools/image/go.sum
	@echo "Building syft and go-licenses into .cache/bin: 4 to 10 minutes on two cores."
	@cd internal/tools/image && CGO_ENABLED=0 GOWORK=off GOBIN=$(TOOLS) $(GO_SHOWN) "syft and go-licenses" install -trimpath -ldflags "-s -w -X main.version=$(shell sed -n 's/.*anchore\/syft v\([^ ]*\).*/\1/p' internal/tools/image/go.mod)" tool
	@touch $(TOOLS)/syft $(TOOLS)/go-licenses

$(TOOLS)/nfpm: internal/tools/package/go.mod internal/tools/package/go.sum
	@echo "Building nfpm into .cache/bin: about a minute."
	@cd internal/tools/package && CGO_ENABLED=0 GOWORK=off GOBIN=$(TOOLS) $(GO_SHOWN) nfpm install -trimpath -ldflags "-s -w" tool
	@touch $@

$(BIN)/licenses/go/LICENSE: distribution/go.mod distribution/go.sum docker/licenses.sh $(TOOLS)/go-licenses
	@echo "Collecting licences into bin/licenses."
	@PATH=$(TOOLS):$$PATH docker/licenses.sh $(BIN)/licenses $(BIN)/modules
	@touch $@

$(TOOLS)/helm $(TOOLS)/kubeconform: internal/tools/helm/go.mod internal/tools/helm/go.sum
	@echo "Building helm and kubeconform into .cache/bin: about 2 minutes on two cores."
	@cd internal/tools/helm && CGO_ENABLED=0 GOWORK=off GOBIN=$(TOOLS) $(GO_SHOWN) "helm and kubeconform" install -trimpath -ldflags "-s -w" tool
	@touch $(TOOLS)/helm $(TOOLS)/kubeconform

$(TOOLS)/golangci-lint: internal/tools/lint/go.mod internal/tools/lint/go.sum
	@echo "Building golangci-lint into .cache/bin: 2 to 4 minutes on two cores."
	@cd internal/tools/lint && GOWORK=off GOBIN=$(TOOLS) $(GO_SHOWN) golangci-lint install tool
	@touch $@
