package registry

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	weaver      = flag.String("weaver", "", "an executable of OpenTelemetry Weaver, 0.25 or newer")
	conventions = flag.String("conventions", "", "the folder model of the semantic conventions that the manifest names, where it cannot be fetched")
)

// weaverPath returns the executable. Without one the test is left out.
func weaverPath(t *testing.T) string {
	t.Helper()
	if *weaver == "" {
		t.Skip("no -weaver is given; the checks of this package have run")
	}
	path, err := filepath.Abs(*weaver)
	require.NoError(t, err)
	return path
}

var registryPath = regexp.MustCompile(`registry_path: .*`)

// writeManifest writes the manifest into a folder, with the conventions from where they are.
func writeManifest(t *testing.T, folder string) {
	t.Helper()
	manifest, err := os.ReadFile(harness.Path("registry", "manifest.yaml"))
	require.NoError(t, err)
	if *conventions != "" {
		manifest = registryPath.ReplaceAllLiteral(manifest, []byte("registry_path: "+*conventions))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "manifest.yaml"), manifest, 0o600))
}

// copyRegistry returns a folder with the registry.
func copyRegistry(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, path := range glob(t, "registry", "*.yaml") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o600))
	}
	writeManifest(t, folder)
	return folder
}

// check runs weaver registry check. A warning is an error, too, but for the one that the form of
// the conventions themselves is not stable yet.
func check(t *testing.T, folder string) {
	t.Helper()
	status, output := harness.Run(t, harness.Command{
		Name: "weaver", Path: weaverPath(t), Args: []string{"registry", "check", "-r", folder}, Env: []string{"HOME=" + t.TempDir()},
	}, 10*time.Minute)
	require.Zero(t, status, output)
	assert.NotContains(t, strings.ReplaceAll(output, "⚠ File format `definition/2`", ""), "⚠", "a warning")
}

func TestWeaverChecksTheRegistry(t *testing.T) { check(t, copyRegistry(t)) }

// TestWeaverChecksTheProposal has weaver read the definitions that are proposed to the
// conventions, as they would be in a registry beside them.
func TestWeaverChecksTheProposal(t *testing.T) {
	weaverPath(t)
	text, err := os.ReadFile(harness.Path("docs", "upstream", "hw-gpu.yaml"))
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "hw-gpu.yaml"), text, 0o600))
	writeManifest(t, folder)
	check(t, folder)
}

// TestWeaverFindsNothingInWhatIsWritten sends a weaver what components have made of recordings,
// and reads its report: of names of this project it finds nothing worse than what is missing
// where it is not known.
func TestWeaverFindsNothingInWhatIsWritten(t *testing.T) {
	path, report := weaverPath(t), t.TempDir()
	grpcPort, adminPort := harness.FreePort(t), harness.FreePort(t)
	process := harness.Start(t, harness.Command{Name: "weaver", Path: path, Env: []string{"HOME=" + t.TempDir()}, Args: []string{
		"registry", "live-check", "-r", copyRegistry(t), "--format", "json", "--no-stream", "--output", report, "--otlp-grpc-address", "127.0.0.1",
		"--otlp-grpc-port", strconv.Itoa(grpcPort), "--admin-port", strconv.Itoa(adminPort), "--inactivity-timeout", "300",
	}})
	admin := fmt.Sprintf("http://127.0.0.1:%d", adminPort)
	require.Eventually(t, func() bool {
		_, err := harness.Get(t.Context(), admin+"/health")
		return err == nil || !process.Running()
	}, 5*time.Minute, 100*time.Millisecond)
	require.True(t, process.Running(), "it has ended")
	sender, err := harness.NewGRPCSender(fmt.Sprintf("127.0.0.1:%d", grpcPort))
	require.NoError(t, err)
	defer func() { _ = sender.Close() }()
	made := madeOfRecordings(t)
	each(t, made.traces, func(td ptrace.Traces) error { return sender.Traces(t.Context(), td) })
	each(t, made.metrics, func(md pmetric.Metrics) error { return sender.Metrics(t.Context(), md) })
	each(t, made.logs, func(ld plog.Logs) error { return sender.Logs(t.Context(), ld) })

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, admin+"/stop", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Eventually(t, func() bool { return !process.Running() }, 5*time.Minute, 100*time.Millisecond)
	findings := readReport(t, report)
	assert.Empty(t, slices.Sorted(maps.Keys(findings)))
}

func each[T any](t *testing.T, all []T, send func(T) error) {
	t.Helper()
	require.NotEmpty(t, all)
	for _, one := range all {
		require.NoError(t, send(one))
	}
}

// advice is what weaver says of a name.
type advice struct {
	ID      string `json:"id"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Signal  string `json:"signal_type"`
	Name    string `json:"signal_name"`
	Context struct {
		Key string `json:"attribute_key"`
	} `json:"context"`
}

// isOurs reports whether it is of a name of this project.
func (a *advice) isOurs() bool { return IsOwn(cmp.Or(a.Context.Key, a.Name)) }

// accepted are the violations that remain.
var accepted = map[string]string{
	// ml.loss is an attribute, and ml.loss.scope another one. The names are older than the rule.
	"illegal_namespace": "",
	// A client takes it from OTEL_RESOURCE_ATTRIBUTES, which has texts only; its points have a number.
	"type_mismatch": "ml.rank.global",
}

// readReport returns weaver's violations that are of names of this project, and how often.
func readReport(t *testing.T, folder string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "live_check.json"))
	require.NoError(t, err)
	var content any
	require.NoError(t, json.Unmarshal(text, &content))
	findings, ours := make(map[string]int), 0
	add := func(a *advice) {
		if !a.isOurs() {
			return
		}
		ours++
		if only, ok := accepted[a.ID]; a.Level == "violation" && (!ok || only != "" && (only != a.Context.Key || a.Signal != "resource")) {
			findings[fmt.Sprintf("%s of %s %s: %s", a.ID, a.Signal, a.Name, a.Message)]++
		}
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if list, ok := v["all_advice"]; ok {
				raw, err := json.Marshal(list)
				require.NoError(t, err)
				var all []advice
				require.NoError(t, json.Unmarshal(raw, &all))
				for i := range all {
					add(&all[i])
				}
				return
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(content)
	// It says of each that it is not stable.
	require.NotZero(t, ours, "weaver has said nothing at all")
	return findings
}
