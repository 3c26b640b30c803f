package smoke

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// languages are those of fenced blocks, and what reads them.
var languages = map[string]string{
	"yaml":    "TestDocumentedYAMLLoads",
	"console": "TestDocumentedCommands",
	"promql":  "e2e.TestMainJob/documents",
	"python":  "TestDocumentedPrograms",
	"json":    "TestDocumentedPrograms",
	"elixir":  "nothing: no Erlang virtual machine is at hand",
	"text":    "nothing: it is output, with no prompt in it",
	"":        "nothing: the same",
}

// Every fenced block is of a language that some test reads, so that nothing that
// a reader may copy goes unread.
func TestDocumentedLanguages(t *testing.T) {
	for _, block := range documented(t) {
		where := fmt.Sprintf("%s:%d", block.File, block.Line)
		assert.Contains(t, languages, block.Language, "%s: no test reads this language; add it with what does", where)
		if commands := block.Commands(); block.Language == "console" {
			assert.NotEmpty(t, commands, "%s: a console block has commands, behind \"$ \"", where)
		} else if block.Language == "text" || block.Language == "" {
			assert.Empty(t, commands, "%s: commands belong into a console block", where)
		}
	}
}

// Python has to compile and JSON to be JSON.
func TestDocumentedPrograms(t *testing.T) {
	check := map[string]string{
		"python": "import ast, sys; ast.parse(sys.stdin.read())",
		"json":   "import json, sys; json.load(sys.stdin)",
	}
	for _, block := range documents.Of(documented(t), "python", "json") {
		command := exec.CommandContext(t.Context(), harness.Python(t), "-c", check[block.Language])
		command.Stdin = strings.NewReader(block.Text)
		output, err := command.CombinedOutput()
		assert.NoError(t, err, "%s:%d: %s", block.File, block.Line, output)
	}
}

// commandRule says what is done with commands that a document has.
type commandRule struct {
	// pattern is of the whole command.
	pattern string
	// check runs it, or shows that something else does.
	check func(t *testing.T, match []string)
}

// commandRules are tried in order; a command that fits none fails the test.
var commandRules = []commandRule{
	// A target does what its name says elsewhere: it must be there.
	{`make ([a-z0-9-]+)( [A-Z]+=\S+)*`, func(t *testing.T, match []string) {
		makefile, err := os.ReadFile(harness.Path("Makefile"))
		require.NoError(t, err)
		assert.Regexp(t, `(?m)^`+match[1]+`:.*## `, string(makefile), "make has no target %s with a help line", match[1])
	}},
	{`bin/otelcol-ml validate --config (\S+)`, func(t *testing.T, match []string) {
		code, output := harness.ValidateIn(t, harness.Path(), nil, documentedFile(t, match[1]))
		assert.Zero(t, code, output)
	}},
	{`bin/otelcol-ml --config (\S+)`, func(t *testing.T, match []string) { runs(t, match[1]) }},
	// lines.yaml stands for any of the quick start's additions, which
	// e2e/stacks runs.
	{`bin/otelcol-ml --config (\S+) --config lines.yaml`, func(t *testing.T, match []string) { runs(t, match[1]) }},
	// With addresses of other machines it can be checked, not run.
	{`((?:[A-Z_]+=\S+ )*)bin/otelcol-ml((?: --config \S+)+)`, func(t *testing.T, match []string) {
		var files []string
		for file := range strings.FieldsSeq(strings.ReplaceAll(match[2], "--config", "")) {
			files = append(files, documentedFile(t, file))
		}
		code, output := harness.ValidateIn(t, harness.Path(), strings.Fields(match[1]), files...)
		assert.Zero(t, code, output)
	}},
	{`bin/otelcol-ml (components|--version)`, func(t *testing.T, match []string) {
		code, output := harness.Run(t, harness.Command{Name: "otelcol-ml", Path: harness.CollectorBinary(t), Args: match[1:2]}, harness.StartTimeout)
		assert.Zero(t, code, output)
	}},
	{`bin/mlgen (.+?)(?: --sent sent.jsonl)?`, func(t *testing.T, match []string) { generates(t, match[1]) }},
	{`go run \./receiver/gpureceiver/cmd/gpurecord -duration 2m gpu-recording\.yaml`, func(t *testing.T, _ []string) {
		isTest(t, "receiver/gpureceiver/cmd/gpurecord", "TestRun")
	}},
	// A collector with nccl.yaml answers these.
	{`curl -sf http://127\.0\.0\.1:888[89]/metrics \| grep -E '(?:nccl_rank_state|otelcol_receiver_nccl_queries)'`, func(t *testing.T, _ []string) {
		isTest(t, "e2e/smoke", "TestTheMissingRank")
	}},
	// What a running collector answers.
	{`(?:watch -c )?curl -sf '?(http://127\.0\.0\.1:(?:8889|8888|8890|13133)/[^' ]*)'?(?: \| grep (?:-E )?'?([^']+?)'?)?`, func(t *testing.T, match []string) {
		answers(t, match[1], match[2])
	}},
	{`ssh -N -L 8890:127\.0\.0\.1:8890 [a-z0-9-]+`, func(t *testing.T, _ []string) { knownPorts(t, "127.0.0.1:8890") }},
	{`htpasswd -B -c (\S+) ada`, func(t *testing.T, match []string) { readsFile(t, match[1]) }},
	{`openssl rand -hex 32 > (\S+)`, func(t *testing.T, match []string) { readsFile(t, match[1]) }},
	// e2e/view asks the page in the same way.
	{`curl -u ada --cacert fleet\.crt https://fleet\.example:8890/`, func(t *testing.T, _ []string) { isTest(t, "e2e/view", "TestFleet") }},
	// What Prometheus and Jaeger answer is looked at in e2e.TestMainJob.
	{documents.ServerCommand.String(), func(*testing.T, []string) {}},
	{`export((?: [A-Z_]+=\S+)+)`, func(t *testing.T, match []string) { knownPorts(t, match[1]) }},

	{`bin/otelcol-ml --feature-gates=exporter\.file\.nativeCompression((?: --config \S+)+)`, func(t *testing.T, match []string) {
		var files []string
		for file := range strings.FieldsSeq(strings.ReplaceAll(match[1], "--config", "")) {
			files = append(files, documentedFile(t, file))
		}
		code, output := harness.ValidateIn(t, harness.Path(), nil, files...)
		assert.Zero(t, code, output)
		isTest(t, "e2e/archive", "TestArchive")
	}},
	{`(?:examples/venv\.sh archive|(?:OTELCOL_ML_HASH_KEY=\S+ )?\.cache/venvs/archive/bin/python examples/archive/main\.py (?:convert|ask|user|delete|text) .+)`, func(t *testing.T, match []string) {
		for file := range strings.FieldsSeq(match[0]) {
			if strings.HasPrefix(file, "examples/") {
				documentedFile(t, file)
			}
		}
		isTest(t, "e2e/archive", "TestArchive")
	}},

	// The programs of examples are run by e2e/clients, where their virtual
	// environments are.
	{`(?:examples/venv\.sh ([a-z]+)|examples/venv\.sh ([a-z]+) && \.cache/venvs/([a-z]+)/bin/python examples/([a-z]+)/main\.py( --[a-z-]+)*)`, func(t *testing.T, match []string) {
		isExample(t, match[1:5]...)
	}},
	{`\.cache/venvs/([a-z]+)/bin/python examples/([a-z]+)/main\.py`, func(t *testing.T, match []string) { isExample(t, match[1:]...) }},
	// The versions are those that an example is locked to. e2e/clients runs the loop.
	{`pip install ((?: ?\S+==\S+)+)`, func(t *testing.T, match []string) {
		locked, err := os.ReadFile(harness.Path("examples", "llm", "requirements.txt"))
		require.NoError(t, err)
		for version := range strings.FieldsSeq(match[1]) {
			if !strings.HasPrefix(version, "opentelemetry-distro==") {
				assert.Contains(t, string(locked), "\n"+version+" ")
			}
		}
	}},
	{`python loop\.py`, func(t *testing.T, _ []string) { isTest(t, "e2e/clients", "TestQuickstartLoop") }},
	// A reader's own program.
	{`opentelemetry-instrument python agent\.py`, func(*testing.T, []string) {}},
	{`examples/record\.py ([a-z]+) --steps 2`, func(t *testing.T, match []string) {
		// It writes the recordings anew, which the components' tests read.
		isExample(t, match[1])
		assert.DirExists(t, harness.Path("examples", match[1], "recording"))
	}},
	{`for c in (.+); do GOWORK=off go test -C \$c -run (\w+) -update \. \|\| break; done`, func(t *testing.T, match []string) {
		for component := range strings.FieldsSeq(match[1]) {
			isTest(t, component, match[2])
		}
	}},
	{`GOWORK=off go test -C (\S+) -count=1 -run (\w+)(?:/\w+)? \./(\S*)`, func(t *testing.T, match []string) {
		isTest(t, match[1]+"/"+match[3], match[2])
	}},
	// Tried from an empty Debian by e2e/packages, which reads it here.
	{`apt-get install --no-install-recommends (gcc .+)`, func(t *testing.T, _ []string) {
		assert.FileExists(t, harness.Path("e2e", "packages", "try.sh"))
	}},
	// The packages are tried by e2e/packages/install.sh.
	{`(?:apt|dnf) install \./dist/otelcol-ml\S+`, func(*testing.T, []string) {}},
	{`tar -xzf dist/otelcol-ml-\[0-9\]\*\.tar\.gz`, func(*testing.T, []string) {}},
	{`otelcol-ml-(\S+)-linux-amd64/otelcol-ml --config otelcol-ml-\S+-linux-amd64/(config/\S+)`, func(t *testing.T, match []string) {
		assert.Equal(t, readManifest(t).Dist.Version, match[1])
		documentedFile(t, "distribution/"+match[2])
	}},
	{`(?:systemctl (?:status|restart|enable --now)|journalctl --unit) (\S+)`, func(t *testing.T, match []string) {
		documentedFile(t, "distribution/package/"+match[1]+".service")
	}},
	{`systemctl daemon-reload`, func(*testing.T, []string) {}},
	{`install -D -m 0644 /usr/share/otelcol-ml/(\S+) /etc/systemd/system/otelcol-ml\.service\.d/(\S+)`, func(t *testing.T, match []string) {
		documentedFile(t, "distribution/package/"+match[1])
		assert.Equal(t, match[1], match[2])
	}},
	{`bin/queuecheck (\S+)`, func(t *testing.T, _ []string) { isTest(t, "cmd/queuecheck", "TestDamagedPagesArePutAside") }},
	{`echo '(.+)' \| sudo tee -a /var/lib/otelcol-ml/state/(\w+)`, func(t *testing.T, match []string) {
		assert.Equal(t, "verdicts", match[2])
		assert.Regexp(t, `^[a-z_]+ [0-9a-f]{16} (right|wrong)( .*)?$`, match[1])
		isTest(t, "connector/mlmetricsconnector", "TestVerdictsOfPeople")
	}},
	{`git diff --stat`, func(*testing.T, []string) {}},

	// Reproductions: the folders' names are those of one run.
	{`python3 (?:demo-output/)?reproductions/\S+/repro\.py(?: --allow-module \S+)?`, func(t *testing.T, _ []string) { isTest(t, "e2e", "testReproductions") }},
	{`echo \$\?`, func(t *testing.T, _ []string) { isTest(t, "e2e", "testReproductions") }},
	{`for r in \$\(grep -l regressor demo-output/reproductions/\*/\*/repro\.py\); do \.cache/venvs/torchtel/bin/python \$r --allow-module regressor; done`, func(t *testing.T, _ []string) {
		isTest(t, "e2e/clients", "TestTorchTel")
	}},
	{`git bisect (start|run) .*`, func(t *testing.T, _ []string) { isTest(t, "processor/reprogenprocessor", "TestBisect") }},

	// Containers are not for every machine that tests; the files that a command
	// names have to be there.
	{`(?:docker|podman) (?:compose|run|build|ps|logs|volume|inspect|exec|image|load|network|stop|rm|pull|tag|images)\b(.*)`, func(t *testing.T, match []string) {
		for _, file := range regexp.MustCompile(`(?:-f|--file)[ =](\S*(?:\.ya?ml|Dockerfile))`).FindAllStringSubmatch(match[1], -1) {
			documentedFile(t, file[1])
		}
	}},
	// Clusters neither. The chart and its objects are those of e2e/helm.
	{`helm (?:install|upgrade|rollback|uninstall) otelcol-ml(?: (deploy/\S+))? --namespace monitoring(?: --create-namespace)?(?: --values my-values\.yaml)?`, func(t *testing.T, match []string) {
		assert.DirExists(t, harness.Path(filepath.FromSlash(match[1])))
	}},
	{`kubectl create namespace monitoring`, func(*testing.T, []string) {}},
	{`kubectl label namespace monitoring pod-security\.kubernetes\.io/enforce=privileged`, func(*testing.T, []string) {}},
	{`kubectl port-forward --namespace monitoring daemonset/otelcol-ml-agent 8890:8890`, func(t *testing.T, _ []string) { knownPorts(t, "127.0.0.1:8890") }},
	{`kubectl delete pvc --namespace monitoring --selector app\.kubernetes\.io/instance=otelcol-ml`, func(*testing.T, []string) {}},
	// helm upgrade keeps the partition only if the chart says nothing of it.
	{`kubectl patch statefulset otelcol-ml-gateway --namespace monitoring --patch '(.+)'`, func(t *testing.T, match []string) {
		assert.JSONEq(t, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, match[1])
		template, err := os.ReadFile(harness.Path("deploy", "helm", "otelcol-ml", "templates", "gateway.yaml"))
		require.NoError(t, err)
		assert.Contains(t, string(template), "kind: StatefulSet")
		assert.NotContains(t, string(template), "updateStrategy")
	}},
	// Nothing to be deleted is there.
	{`rm -r /var/lib/otelcol-ml/\w+`, func(*testing.T, []string) {}},
	// Needs a GPU and the model.
	{`vllm serve \S+ --otlp-traces-endpoint=(\S+)`, func(t *testing.T, match []string) { knownPorts(t, match[1]) }},
	{`nvidia-smi( .*)?`, func(*testing.T, []string) {}},
}

// Every command that a reader may copy is run, or known to be run elsewhere, and
// the shell can read it.
func TestDocumentedCommands(t *testing.T) {
	for _, block := range documents.Of(documented(t), "console") {
		for _, command := range block.Commands() {
			t.Run(fmt.Sprintf("%s:%d %s", block.File, block.Line, command), func(t *testing.T) {
				t.Parallel()
				output, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", command).CombinedOutput()
				require.NoError(t, err, string(output))
				for _, rule := range commandRules {
					if match := regexp.MustCompile(`^` + rule.pattern + `$`).FindStringSubmatch(command); match != nil {
						rule.check(t, match)
						return
					}
				}
				t.Errorf("%s:%d: no rule of this test knows what to do with %q", block.File, block.Line, command)
			})
		}
	}
}

// readsFile expects a documented or a shipped configuration that reads a file.
func readsFile(t *testing.T, name string) {
	t.Helper()
	var all strings.Builder
	for _, file := range []string{harness.Path("docs", "operations.md"), harness.Path("exporter", "mlviewexporter", "README.md"), harness.Path("distribution", "config", "fleet.yaml")} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	assert.Regexp(t, `file(name)?: (\$\{env:[A-Z_]+:-)?`+regexp.QuoteMeta(name)+`\}?\n`, all.String(), "a configuration reads the file")
}

// documentedFile returns the path of a file that a command names from the
// repository's root.
func documentedFile(t *testing.T, name string) string {
	t.Helper()
	path := harness.Path(filepath.FromSlash(name))
	require.FileExists(t, path)
	return path
}

// runs expects a collector to start with a configuration. It is killed at the end:
// a collector says that it is ready before it listens to SIGTERM.
func runs(t *testing.T, config string) {
	t.Helper()
	harness.StartCollector(t, harness.CollectorOptions{Config: documentedFile(t, config), Env: []string{recording()}})
}

// generates runs mlgen with a command's arguments, for a moment.
func generates(t *testing.T, arguments string) {
	t.Helper()
	generator := harness.Command{
		Name: "mlgen", Path: harness.Binary(t, "build", "bin", "mlgen"),
		Args: append(strings.Fields(arguments), "--duration", "1s",
			"--endpoint", running().grpc, "--http-endpoint", "http://"+running().http),
	}
	code, output := harness.Run(t, generator, harness.StartTimeout)
	assert.Zero(t, code, output)
}

// isExample expects a folder of examples, which e2e/clients runs.
func isExample(t *testing.T, names ...string) {
	t.Helper()
	names = slices.DeleteFunc(slices.Compact(slices.Clone(names)), func(name string) bool { return name == "" })
	require.Len(t, names, 1, "the command is about several examples")
	assert.FileExists(t, harness.Path("examples", names[0], "main.py"))
	assert.FileExists(t, harness.Path("examples", names[0], "requirements.txt"))
	assert.FileExists(t, harness.Path("e2e", "clients", names[0]+"_test.go"))
}

// isTest expects a folder to have a test of this name, or of one that begins so.
func isTest(t *testing.T, folder, name string) {
	t.Helper()
	files, err := filepath.Glob(harness.Path(filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "func "+name) {
			return
		}
	}
	t.Errorf("%s has no test %s", folder, name)
}

// ports are those that a command may send to: the collector's, the servers', and
// the endpoints of Snakepit and vLLM.
var ports = []string{"4317", "4318", "8888", "8889", "8890", "13133", "9090", "16686", "3000", "11000", "9568", "8000"}

var portOf = regexp.MustCompile(`(?:127\.0\.0\.1|localhost):([0-9]+)`)

func knownPorts(t *testing.T, text string) {
	t.Helper()
	for _, match := range portOf.FindAllStringSubmatch(text, -1) {
		assert.Contains(t, ports, match[1], "nothing listens on this port")
	}
}

// answers asks a running collector what a command asks, and expects a line that
// fits what the command greps for.
func answers(t *testing.T, url, pattern string) {
	t.Helper()
	for from, to := range running().addresses {
		url = strings.Replace(url, from, to, 1)
	}
	line := regexp.MustCompile(`(?m)^.*` + strings.TrimPrefix(pattern, "^") + `.*$`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if !assert.NoError(c, err) {
			return
		}
		response, err := http.DefaultClient.Do(request)
		if !assert.NoError(c, err) {
			return
		}
		body, err := io.ReadAll(response.Body)
		assert.NoError(c, err)
		assert.NoError(c, response.Body.Close())
		assert.Equal(c, http.StatusOK, response.StatusCode)
		assert.Regexp(c, line, string(body))
	}, arrival, poll)
}

// demo is a collector with the demo's configuration that the commands ask.
type demo struct {
	grpc, http string
	// addresses are where it listens, by the address that documents have.
	addresses map[string]string
}

// running is set by TestMain.
var running func() demo

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, func(s *harness.Suite) {
		running = sync.OnceValue(func() demo { return startDemo(s) })
	}))
}

// startDemo runs the demo's collector with some telemetry of each system.
func startDemo(s *harness.Suite) demo {
	collector := harness.StartCollector(s, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env:    []string{recording()},
	})
	harness.Generate(s, collector, harness.Workload{
		Seed: 31, Scenarios: "all", Duration: 3 * time.Second, Rate: 20, Ranks: 2, MetricsInterval: time.Second,
	})
	demo := demo{
		grpc:      collector.Address(s, "receivers::otlp::protocols::grpc"),
		http:      collector.Address(s, "receivers::otlp::protocols::http"),
		addresses: map[string]string{},
	}
	for path, configured := range collector.ConfiguredAddresses() {
		demo.addresses[configured] = collector.Address(s, path)
	}
	return demo
}

// TestDocumentedNumberOfSeries holds what docs/cost.md counts against a scrape.
func TestDocumentedNumberOfSeries(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Path("docs", "cost.md"))
	require.NoError(t, err)
	number := func(row string) float64 {
		match := regexp.MustCompile(row).FindStringSubmatch(string(page))
		require.Len(t, match, 2, "docs/cost.md has no row %s", row)
		value, err := strconv.ParseFloat(match[1], 64)
		require.NoError(t, err)
		return value
	}
	var text string
	count := func(begin string, labels ...string) float64 {
		found := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, begin) && !slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(line, label) }) {
				found++
			}
		}
		return float64(found)
	}
	perStep := number(`([0-9]+) for whole steps`)
	perPhase := number(`and ([0-9]+) for each of five phases`)
	perFunction := number(`a function in .ml_call_duration_seconds.: ([0-9]+)`)
	perRank := number(`a rank of a TorchTel run: ([0-9]+);`)
	perWorkload := number(`a workload of a GPU: ([0-9]+)`)
	address := running().addresses["127.0.0.1:8889"]
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		text, err = harness.Get(t.Context(), "http://"+address+"/metrics")
		assert.NoError(c, err)
		assert.InDelta(c, perPhase, count("ml_step_duration_seconds_", `job="torchtel"`, `ml_rank_global="0"`, `ml_phase="forward"`), 0)
		assert.InDelta(c, perStep, count("ml_step_duration_seconds_", `job="torchtel"`, `ml_rank_global="0"`, `ml_phase="step"`), 0)
		assert.InDelta(c, perFunction, count("ml_call_duration_seconds_", `job="tuft"`, `ml_function="optim_step"`, `result="ok"`), 0, "of all runs")
		// How many states a run's time has depends on what happened.
		assert.InDelta(c, perRank, count("ml_", `job="torchtel"`, `ml_rank_global="0"`), 4)
		assert.InDelta(c, perWorkload, count("nvidia_gpu_workload_", `service_name="snakepit"`), 0)
	}, arrival, poll)
}

// TestSeriesOfRunsAndRanks counts what ml_metrics shows of each rank, of each run
// beside its ranks, and of each run whose process has no rank, while every scenario
// is played.
func TestSeriesOfRunsAndRanks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Path("connector", "mlmetricsconnector", "series.md"))
	require.NoError(t, err)
	var names []string
	for _, row := range regexp.MustCompile("(?m)^- \\[`[^`]+`\\]\\([^)]*\\): `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		names = append(names, row[1])
	}
	require.Greater(t, len(names), 30)
	ours := func(name string) bool {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if slices.Contains(names, strings.TrimSuffix(name, suffix)) {
				return true
			}
		}
		return false
	}
	const perRank, perRun = 100, 60
	address := running().addresses["127.0.0.1:8889"]
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		text, err := harness.Get(t.Context(), "http://"+address+"/metrics")
		assert.NoError(c, err)
		label := func(line, name string) string {
			if match := regexp.MustCompile(`[{,]` + name + `="([^"]*)"`).FindStringSubmatch(line); match != nil {
				return match[1]
			}
			return ""
		}
		shown, ranks, runs := map[string]int{}, 0, 0
		for line := range strings.Lines(text) {
			name, _, labelled := strings.Cut(line, "{")
			if run := label(line, "ml_run_id"); labelled && run != "" && ours(name) {
				shown[label(line, "job")+" run "+run+" rank "+label(line, "ml_rank_global")]++
			}
		}
		ranked := map[string]bool{}
		for of := range shown {
			run, rank, _ := strings.Cut(of, " rank ")
			ranked[run] = ranked[run] || rank != ""
		}
		for of, n := range shown {
			switch run, rank, _ := strings.Cut(of, " rank "); {
			case rank != "":
				ranks++
				assert.LessOrEqual(c, n, perRank, of)
			case ranked[run]:
				runs++
				assert.LessOrEqual(c, n, perRun, of)
			default:
				runs++
				assert.LessOrEqual(c, n, perRank, "the process of %s has no rank", of)
			}
		}
		assert.GreaterOrEqual(c, ranks, 2)
		assert.GreaterOrEqual(c, runs, 4)
	}, arrival, poll)
}
