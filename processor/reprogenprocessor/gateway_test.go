package reprogenprocessor

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// page is an ml_view that says which runs hang, as a test changes it.
type page struct {
	*httptest.Server
	body                       atomic.Pointer[string]
	asked, unchanged, redirect atomic.Int64
}

func newPage(t *testing.T) *page {
	p := new(page)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := *p.body.Load()
		tag := fmt.Sprintf("%q", strconv.Itoa(int(crc32.ChecksumIEEE([]byte(body)))))
		switch {
		case r.URL.Path == "/elsewhere":
			p.redirect.Add(1)
		case r.Header.Get("Authorization") != "Bearer of-the-fleet" || r.URL.Path != "/api/v1/hangs":
			w.WriteHeader(http.StatusUnauthorized)
		case body == "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case r.Header.Get("If-None-Match") == tag:
			p.unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", tag)
			_, _ = w.Write([]byte(body))
		}
		p.asked.Add(1)
	}))
	t.Cleanup(p.Close)
	p.say()
	return p
}

// say sets the hangs that the page knows.
func (p *page) say(hangs ...string) {
	body := "[" + strings.Join(hangs, ",") + "]"
	p.body.Store(&body)
}

// hangOf is a hang of a run in the form of the page.
func hangOf(run string, since time.Time) string {
	return fmt.Sprintf(`{"key": "k", "id": "p-%s", "kind": "looks_hung", "since": %q, "severity": "page", "run_id": %q, "service": "trainer",
		"subject": "trainer/%s", "evidence": ["rank 900 is dead\n# forged"], "before": [], "next": "Look at rank 900."}`, run, since.Format(time.RFC3339), run, run)
}

// asks is a configuration that asks the page.
func asks(t *testing.T, p *page) *Config {
	cfg := waitingConfig(t)
	cfg.Evidence.Gateway.Endpoint = p.URL
	cfg.Evidence.Gateway.Headers.Set("Authorization", "Bearer of-the-fleet")
	cfg.limits.ask, cfg.limits.later = 5*time.Millisecond, 5*time.Millisecond
	return cfg
}

// await waits until so many more questions were answered.
func (p *page) await(t *testing.T, more int64) {
	t.Helper()
	was := p.asked.Load()
	require.Eventually(t, func() bool { return p.asked.Load() >= was+more }, time.Minute, time.Millisecond)
}

// TestAHangThatAGatewayConcludes is gathered once, where the run is.
func TestAHangThatAGatewayConcludes(t *testing.T) {
	p := newPage(t)
	cfg := asks(t, p)
	pid, since := rank(t, "run-7", 3), time.Now().Add(-time.Minute)
	w := newWorld(t, cfg)
	p.await(t, 3)
	assert.Positive(t, p.unchanged.Load(), "no hang, no answer")

	p.say(hangOf("elsewhere", since), hangOf("run-7", since))
	report := text(t, bundle(t, cfg), "report.md")
	assert.Regexp(t, `^# Run run-7 \(trainer/run-7\): looks hung\n`, report)
	assert.Contains(t, report, "- rank 900 is dead # forged\n")
	assert.Contains(t, report, "Next: Look at rank 900.")
	assert.Regexp(t, `process `+strconv.Itoa(pid)+` \(sleep\), rank 3`, report)

	// Dumps of all hosts, which the gateway compares, tell more than those of this host.
	knows := strings.Replace(hangOf("run-7", since), `"evidence": [`, `"evidence": ["Flight Recorder: rank 3 waits for rank 900", `, 1)
	p.say(knows)
	eventually(t, bundle(t, cfg), "# Rank 3 waits for rank 900.\n\nRun run-7")
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits("run-7", "Of rank 900 there is no dump.", time.Now().Add(time.Minute))))
	p.await(t, 2)
	p.say(strings.Replace(knows, "for rank 900", "for rank 901", 1))
	eventually(t, bundle(t, cfg), "# Rank 3 waits for rank 901.\n\nRun run-7")

	p.say(hangOf("run-7", since))
	p.await(t, 2)
	p.say(hangOf("run-7", since), hangOf("another", since))
	p.await(t, 2)
	p.say()
	p.await(t, 2)
	p.say(hangOf("run-7", since), hangOf("third", since))
	p.await(t, 2)
	p.say(hangOf("run-7", time.Now().Add(time.Second)), strings.Replace(hangOf("run-7", time.Now().Add(time.Second)), "p-run-7", "p-later", 1))
	require.Eventually(t, func() bool { return len(bundles(t, cfg)) == 2 }, time.Minute, time.Millisecond, "it hangs again")
	w.shutdown()
	assert.EqualValues(t, 2, w.count("written"))
	assert.Zero(t, w.count("dropped"))
	assert.Equal(t, []string{"answered"}, w.outcomes())
}

func bundles(t *testing.T, cfg *Config) []string {
	found, err := filepath.Glob(filepath.Join(cfg.Directory, "*", "*", "report.md"))
	require.NoError(t, err)
	return found
}

// TestAHangThatBothConclude is gathered once.
func TestAHangThatBothConclude(t *testing.T) {
	p := newPage(t)
	cfg := asks(t, p)
	rank(t, "run-7", 3)
	rank(t, "run-8", 4)
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("run-7", mlattr.ProblemBegan)))
	bundle(t, cfg)
	since := time.Now().Add(-2 * time.Minute)
	p.say(hangOf("run-7", since), hangOf("run-8", since))
	require.Eventually(t, func() bool { return len(bundles(t, cfg)) == 2 }, time.Minute, time.Millisecond)
	w.shutdown()
	assert.EqualValues(t, 2, w.count("written"))
}

// outcomes are those that questions to a gateway had.
func (w *world) outcomes() (all []string) {
	got, err := w.tel.GetMetric("otelcol_processor_repro_gen_gateway_questions")
	require.NoError(w.t, err)
	for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
		outcome, _ := p.Attributes.Value("outcome")
		all = append(all, outcome.AsString())
	}
	return all
}

// TestAGatewayThatDoesNotAnswer costs nothing but a count, however it does not.
func TestAGatewayThatDoesNotAnswer(t *testing.T) {
	rank(t, "run-7", 3)
	for name, body := range map[string]string{
		"redirect":  "redirect",
		"too large": "[" + strings.Repeat(" ", 1<<20) + hangOf("run-7", time.Now()) + "]",
		"nested":    strings.Repeat("[", 1<<19),
		"no list":   hangOf("run-7", time.Now()),
		"text":      "<html>",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t)
			p.body.Store(&body)
			cfg := asks(t, p)
			w := newWorld(t, cfg)
			p.await(t, 3)
			w.shutdown()
			assert.Equal(t, []string{"failed"}, w.outcomes())
			assert.Empty(t, bundles(t, cfg))
			assert.Zero(t, p.redirect.Load())
		})
	}
	for name, change := range map[string]func(*Config, *page){
		"without authentication": func(cfg *Config, _ *page) { cfg.Evidence.Gateway.Headers = nil },
		"gone":                   func(_ *Config, p *page) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t)
			p.say(hangOf("run-7", time.Now()))
			cfg := asks(t, p)
			change(cfg, p)
			w := newWorld(t, cfg)
			require.Eventually(t, func() bool { return w.count("gateway_questions") > 2 }, time.Minute, time.Millisecond)
			assert.Equal(t, []string{"failed"}, w.outcomes())
			assert.Empty(t, bundles(t, cfg))
		})
	}
}

// TestAnAnswerWithManyHangs is looked at up to a limit.
func TestAnAnswerWithManyHangs(t *testing.T) {
	p := newPage(t)
	var all []string
	for n := range 1500 {
		all = append(all, fmt.Sprintf(`{"id": "p-%d", "kind": "looks_hung", "run_id": "r-%d"}`, n, n))
	}
	p.say(all...)
	cfg := asks(t, p)
	rank(t, "r-255", 0)
	rank(t, "r-256", 0)
	w := newWorld(t, cfg)
	bundle(t, cfg)
	p.await(t, 2)
	w.shutdown()
	require.Len(t, bundles(t, cfg), 1)
	assert.Contains(t, text(t, filepath.Dir(bundles(t, cfg)[0]), "report.md"), "rank 0")
	assert.Zero(t, w.count("dropped"))
}
