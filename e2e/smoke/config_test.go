package smoke

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// recording replaces the path of the demo's GPU recording, which the shipped
// configuration gives relative to the repository.
func recording() string {
	return "GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml")
}

// first is how a configuration begins that is to be merged over another one.
var first = regexp.MustCompile(`^# Over ([a-z-]+[.]yaml)(?: and ([a-z-]+[.]yaml))?: `)

// shipped returns the files that a shipped configuration is to be started with.
func shipped(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var files []string
	if match := first.FindSubmatch(text); match != nil {
		for _, name := range match[1:] {
			if len(name) > 0 {
				files = append(files, filepath.Join(filepath.Dir(file), string(name)))
			}
		}
	}
	return append(files, file)
}

// shippedAll returns the files that the shipped configurations of an option over=FILE or
// over=FILE,FILE of a block are to be started with.
func shippedAll(t *testing.T, over string) []string {
	t.Helper()
	names := strings.Split(over, ",")
	files := shipped(t, harness.Path(filepath.FromSlash(names[0])))
	for _, other := range names[1:] {
		files = append(files, harness.Path(filepath.FromSlash(other)))
	}
	return files
}

// others are the configurations that such a file fits over, too.
var others = regexp.MustCompile(`fits over ([a-z-]+[.]yaml) and\s(?:# )?([a-z-]+[.]yaml), too[.]`)

// What is to be merged over one configuration loads over each that it names.
func TestMergedConfigurationsFitOverTheOthers(t *testing.T) {
	files, err := filepath.Glob(harness.Path("distribution", "config", "*.yaml"))
	require.NoError(t, err)
	tried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range others.FindAllStringSubmatch(string(text), -1) {
			for _, base := range match[1:] {
				tried++
				code, output := harness.Validate(t, nil, filepath.Join(filepath.Dir(file), base), file)
				assert.Zero(t, code, "%s over %s: %s", file, base, output)
			}
		}
	}
	assert.GreaterOrEqual(t, tried, 6, "nccl.yaml, archive.yaml and replay.yaml say what they fit over")
}

func TestShippedConfigurationsValidate(t *testing.T) {
	files, err := filepath.Glob(harness.Path("distribution", "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "distribution/config has no configuration")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			code, output := harness.Validate(t, []string{recording()}, shipped(t, file)...)
			assert.Zero(t, code, output)
			assert.Empty(t, output, "validate is silent about a good configuration")
		})
	}
}

// The default configuration has to run on a machine where nothing is set up:
// no back end, no GPU, no environment variable.
func TestDefaultConfigurationRunsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Dir:    dir,
	})
	collector.AwaitHealthy(t)

	for path, address := range collector.ConfiguredAddresses() {
		assert.True(t, isLoopback(t, address), "%s listens beyond the loopback interface, on %s", path, address)
	}
	// What the kernel knows may be more than what the configuration says.
	listening := collector.ListenAddresses(t)
	assert.Contains(t, listening, collector.Address(t, "receivers::otlp::protocols::grpc"))
	for _, address := range listening {
		assert.True(t, isLoopback(t, address), "it listens beyond the loopback interface, on %s", address)
	}

	assert.Zero(t, collector.Stop(t), "exit code after SIGTERM")
	for _, entry := range harness.LogErrors(collector.Output()) {
		assert.True(t, harness.IsAbsentBackend(entry), "an error that is not an absent back end: %s", entry)
	}
	artifacts, err := harness.Artifacts(filepath.Join(dir, "reproductions"))
	require.NoError(t, err)
	assert.Empty(t, artifacts, "a collector that nobody uses writes no reproduction")
}

// brokenRecording has a value that is no number.
const brokenRecording = `version: 1
origin: made for a test
host_name: host-a
gpus: [{uuid: GPU-a}]
frames:
  - at: 0s
    gpus: [{uuid: GPU-a, power: {draw_watts: much}}]
`

// A configuration with a mistake is refused with the key and the value, before
// anything starts.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		override string
		want     []string
	}{
		"unknown key": {
			override: "processors: {ml_enrich: {vocabularys: []}}",
			want:     []string{"ml_enrich", "vocabularys"},
		},
		"unknown source": {
			override: "receivers: {gpu: {source: cuda}}",
			want:     []string{"gpu", "source", "cuda", "nvml", "replay", "auto"},
		},
		"no recording": {
			override: "receivers: {gpu: {source: replay, replay: {path: /none/recording.yaml}}}",
			want:     []string{"replay::path", "/none/recording.yaml", "must name a recording"},
		},
		"broken recording": {
			override: "receivers: {gpu: {source: replay, replay: {path: RECORDING}}}",
			want:     []string{"replay::path", `"frames[0]::gpus[0]" has "power.draw_watts": "much"; allowed is a number`},
		},
		"unknown metric": {
			override: "receivers: {gpu: {metrics: {hw.gpu.utilisation: {enabled: true}}}}",
			want:     []string{"'metrics' has invalid keys: hw.gpu.utilisation"},
		},
		"timeout longer than the interval": {
			override: "receivers: {gpu: {collection_interval: 5s, timeout: 6s}}",
			want:     []string{"gpu", `"timeout" is 6s; it must be between 0 and "collection_interval", 5s`},
		},
		"no directory": {
			override: `processors: {repro_gen: {directory: ""}}`,
			want:     []string{"repro_gen", "directory"},
		},
		"negative interval": {
			override: "connectors: {ml_metrics: {flush_interval: -1s}}",
			want:     []string{"ml_metrics", "flush_interval", "-1s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := filepath.Join(t.TempDir(), "recording.yaml")
			require.NoError(t, os.WriteFile(broken, []byte(brokenRecording), 0o600))
			mistake := filepath.Join(t.TempDir(), "mistake.yaml")
			override := strings.ReplaceAll(test.override, "RECORDING", broken)
			require.NoError(t, os.WriteFile(mistake, []byte(override), 0o600))
			code, output := harness.Validate(t, nil, harness.Path("distribution", "config", "agent.yaml"), mistake)
			assert.NotZero(t, code)
			for _, want := range test.want {
				assert.Contains(t, output, want)
			}
		})
	}
}

func isLoopback(t *testing.T, address string) bool {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
