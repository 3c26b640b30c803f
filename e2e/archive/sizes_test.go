package archive

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	spans  = flag.Int("spans", 5000, "number of spans whose archive TestSizes measures, of all systems together")
	update = flag.Bool("update", false, "write what TestSizes measures into docs/evidence/performance.md")
)

// systems has about how many spans a step of each has.
var systems = map[string]float64{"torchtel": 10, "tuft": 13, "snakepit": 3.2, "fx": 2.6, "taskweaver": 15.8}

// size is what a system's archive takes.
type size struct {
	spans                 float64
	text, archive, tables int64
}

// TestSizes measures the archives of the systems, with full batches, and how long
// converting and asking takes. It asserts no time.
func TestSizes(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	sizes := map[string]size{}
	var writing, converting time.Duration
	for _, system := range slices.Sorted(maps.Keys(systems)) {
		folder, parquet := t.TempDir(), t.TempDir()
		began := time.Now()
		count := writeArchive(t, folder, system)
		writing += time.Since(began)

		began = time.Now()
		run(t, nil, "convert", folder, parquet)
		converting += time.Since(began)
		one := size{spans: count, archive: sizeOf(t, folder, "*.zst"), tables: sizeOf(t, parquet, "*.parquet"), text: textSize(t, folder)}
		assert.Greater(t, one.text, one.archive)
		sizes[system] = one
		files, err := filepath.Glob(filepath.Join(parquet, "*"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, os.Rename(file, filepath.Join(all, system+"-"+filepath.Base(file))))
		}
	}
	var report strings.Builder
	write := func(format string, arguments ...any) { fmt.Fprintf(&report, format+"\n", arguments...) }
	mib := func(bytes int64, count float64) float64 { return float64(bytes) / (1 << 20) / count * 1e6 }
	write("| system | spans a step | a million spans: JSON | archive | Parquet | archive of a day at 10 steps/s |")
	write("|---|---|---|---|---|---|")
	total := 0.0
	for _, system := range slices.Sorted(maps.Keys(sizes)) {
		one := sizes[system]
		total += one.spans
		perStep := one.spans / steps(system) / generators
		write("| `%s` | %.1f | %.0f MiB | %.0f MiB | %.0f MiB | %.2f GiB |", system, perStep,
			mib(one.text, one.spans), mib(one.archive, one.spans), mib(one.tables, one.spans),
			mib(one.archive, one.spans)*perStep*10*86400/1e6/1024)
	}
	var asked []string
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		began := time.Now()
		ask(t, all, name)
		asked = append(asked, fmt.Sprintf("`%s` %.1f s", name, time.Since(began).Seconds()))
	}
	write("\n%.0f spans of all systems: sending and archiving %.0f s, converting %.0f s, the questions", total, writing.Seconds(), converting.Seconds())
	write("%s.", strings.Join(asked, ", "))
	t.Log("\n" + report.String())
	if *update && !t.Failed() {
		writeReport(t, report.String())
	}
}

// generators is the number of programs that send at the same time.
const generators = 3

// steps is the number of steps of a system that each program sends.
func steps(system string) float64 { return float64(*spans/len(systems)/generators) / systems[system] }

// writeArchive archives steps of a system on a simulated clock and returns the number of
// spans.
func writeArchive(t *testing.T, folder, system string) (count float64) {
	t.Helper()
	collector := startArchive(t, folder, harness.CollectorOptions{}) // there is no back end
	var running []*exec.Cmd
	for seed := range generators {
		mlgen := exec.CommandContext(t.Context(), harness.Binary(t, "build", "bin", "mlgen"),
			"--scenario", system, "--steps", strconv.Itoa(int(steps(system))), "--seed", strconv.Itoa(seed), "--start", "2026-01-31T12:00:00Z",
			// Some 3,000 spans a request, below the 4 MiB that the receiver accepts.
			"--rate", fmt.Sprint(3000/systems[system]),
			"--endpoint", collector.Address(t, "receivers::otlp::protocols::grpc"),
			"--http-endpoint", "http://"+collector.Address(t, "receivers::otlp::protocols::http"))
		mlgen.Stderr = os.Stderr
		require.NoError(t, mlgen.Start())
		running = append(running, mlgen)
	}
	for _, mlgen := range running {
		require.NoError(t, mlgen.Wait())
	}
	received := own(t, t, collector, "otelcol_receiver_accepted_spans", nil)
	awaitArchived(t, collector, int(received))
	assert.Zero(t, collector.Stop(t))
	return received
}

func sizeOf(t *testing.T, folder, pattern string) (bytes int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		bytes += info.Size()
	}
	return bytes
}

// textSize returns the size of an archive without compression.
func textSize(t *testing.T, folder string) int64 {
	t.Helper()
	command := program(t, "text", folder)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	bytes, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, command.Wait())
	return bytes
}

var measured = regexp.MustCompile(`(?s)(<!-- measured: make archive-sizes UPDATE=1 -->\n).*(<!-- end -->)`)

func writeReport(t *testing.T, report string) {
	t.Helper()
	page := harness.Path("docs", "evidence", "performance.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Regexp(t, measured, string(text))
	written := measured.ReplaceAllString(string(text), "${1}"+report+"${2}")
	require.NoError(t, os.WriteFile(page, []byte(written), 0o600))
}
