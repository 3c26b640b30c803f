package reprogenprocessor

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
)

// party sends spans as somebody does: from an address, or with an identity.
type party struct {
	*world
	info client.Info
	sent int
}

func (w *world) from(address string) *party {
	return &party{world: w, info: client.Info{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 40_000}}}
}

// subject is what an authenticator knows of a request.
type subject string

func (s subject) GetAttribute(name string) any {
	if name == "subject" {
		return string(s)
	}
	return nil
}
func (subject) GetAttributeNames() []string { return []string{"subject"} }

// fails sends a failed span of a trace of its own.
func (p *party) fails(c failedCall) ptrace.Span { return p.sends(c, ptrace.StatusCodeError) }

// succeeds sends a span of a trace of its own that did not fail.
func (p *party) succeeds(service string) {
	p.sends(failedCall{service: service, name: "fine"}, ptrace.StatusCodeOk)
}

func (p *party) sends(c failedCall, status ptrace.StatusCode) ptrace.Span {
	p.t.Helper()
	td := ptrace.NewTraces()
	span := c.appendTo(td)
	span.Status().SetCode(status)
	p.sent++
	span.SetTraceID(pcommon.TraceID{byte(len(p.info.Metadata.Get("x"))), byte(p.sent), byte(p.sent >> 8), byte(p.sent >> 16), p.trait()})
	require.NoError(p.t, p.traces.ConsumeTraces(client.NewContext(p.t.Context(), p.info), td))
	return span
}

// trait tells the traces of two parties apart.
func (p *party) trait() byte {
	if p.info.Addr == nil {
		return 255
	}
	ip := p.info.Addr.(*net.TCPAddr).IP
	return ip[len(ip)-1]
}

// livesFor lets services send spans that succeed, every half minute.
func livesFor(w *world, d time.Duration, send func()) {
	for range int(d / (30 * time.Second)) {
		send()
		w.clock.add(30 * time.Second)
	}
}

// starvable is a configuration whose bounds a flood reaches soon.
func starvable(t *testing.T) *Config {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 10, 20
	cfg.limits.groups = 200
	cfg.Retention.MaxArtifacts = 30
	return cfg
}

// flood sends failures under 300 invented names at once, and 20 a second for
// five minutes.
func flood(attacker *party) {
	n := 0
	invented := func() {
		n++
		name := "invented-" + letters(n)
		attacker.fails(failedCall{service: name, errorType: "E" + letters(n)})
	}
	for range 300 {
		invented()
	}
	for range 300 {
		for range 20 {
			invented()
		}
		attacker.pass(time.Second)
	}
}

// TestInventedServices: whatever is invented under other names, a service that
// was there for an hour has its artifacts, its counts, its traces and its folders.
func TestInventedServices(t *testing.T) {
	const hour = 61 * time.Minute
	for name, tc := range map[string]struct {
		victim, attacker string
		// before is what the attacker sends while the victim lives its hour.
		before func(attacker *party, minute int)
	}{
		"from elsewhere":                  {victim: "192.0.2.1", attacker: "192.0.2.66"},
		"over the connection of all":      {victim: "192.0.2.1", attacker: "192.0.2.1"},
		"from elsewhere in the network":   {victim: "2001:db8::1", attacker: "2001:db8:0:1::66"},
		"from an address that sent first": {victim: "192.0.2.1", attacker: "192.0.2.66", before: func(a *party, _ int) { a.succeeds("decoy") }},
		"over the connection of all, some of it fine": {victim: "192.0.2.1", attacker: "192.0.2.1",
			before: func(a *party, n int) { a.succeeds("invented-" + letters(n)) }},
		"with names that were there for an hour": {victim: "192.0.2.1", attacker: "192.0.2.66", before: func(a *party, _ int) {
			for n := range 300 {
				a.succeeds("invented-" + letters(n+1))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := starvable(t)
			w := newWorld(t, cfg)
			victim, attacker := w.from(tc.victim), w.from(tc.attacker)
			attacker.sent = 1 << 20
			minute := 0
			livesFor(w, hour, func() {
				victim.succeeds("victim")
				if minute++; tc.before != nil {
					tc.before(attacker, minute)
				}
			})
			known := func(i int) failedCall {
				return failedCall{service: "victim", errorType: fmt.Sprintf("Known%dError", i)}
			}
			for i := range 3 {
				victim.fails(known(i))
			}
			w.pass(time.Hour)
			require.Len(t, artifacts(t, cfg), 3)
			counted := failedCall{service: "victim", errorType: "Known0Error"}
			for range 5 {
				victim.fails(counted)
			}

			flood(attacker)
			assert.LessOrEqual(t, len(artifacts(t, cfg)), cfg.Retention.MaxArtifacts)
			assert.LessOrEqual(t, w.traces.Shared.groups.Len(), cfg.limits.groups)

			for _, errorType := range []string{"NewError", "NewerError"} {
				span := victim.fails(failedCall{service: "victim", errorType: errorType})
				w.pass(0)
				assert.DirExists(t, w.leadsTo(span.Attributes()), "a new failure has its artifact")
			}
			for i := range 3 {
				span := victim.fails(known(i))
				assert.DirExists(t, w.leadsTo(span.Attributes()), "an older one is kept")
			}
			w.shutdown()
			have := map[string]int64{}
			for _, g := range groups(t, cfg) {
				if g.Services[0] == "victim" {
					have[g.Type] = g.Count
				}
			}
			assert.Equal(t, map[string]int64{"NewError": 1, "NewerError": 1, "Known0Error": 7, "Known1Error": 2, "Known2Error": 2}, have)
		})
	}
}

// TestYoungServiceKeepsItsFolder: a service that was there for ten minutes keeps the
// folder of its only failure, and gets that of the next one, whatever names come once
// over the same connection.
func TestYoungServiceKeepsItsFolder(t *testing.T) {
	cfg := starvable(t)
	w := newWorld(t, cfg)
	victim, attacker := w.from("127.0.0.1"), w.from("127.0.0.1")
	attacker.sent = 1 << 20
	livesFor(w, 10*time.Minute, func() { victim.succeeds("victim") })
	first := victim.fails(failedCall{service: "victim", errorType: "FirstError"})
	w.pass(time.Hour)
	require.DirExists(t, w.leadsTo(first.Attributes()))
	attacker.pass(time.Minute)
	flood(attacker)
	assert.LessOrEqual(t, len(artifacts(t, cfg)), cfg.Retention.MaxArtifacts)
	next := victim.fails(failedCall{service: "victim", errorType: "NextError"})
	w.pass(time.Hour)
	assert.DirExists(t, w.leadsTo(first.Attributes()))
	assert.DirExists(t, w.leadsTo(next.Attributes()))
}

// TestInventedServicesTakeNoCounts: the counts of failures without an artifact
// outlive a flood.
func TestInventedServicesTakeNoCounts(t *testing.T) {
	for name, attacker := range map[string]string{"from elsewhere": "192.0.2.66", "over the connection of all": "192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			cfg := starvable(t)
			cfg.limits.groups, cfg.Retention.MaxArtifacts = 3_000, 1_000
			w := newWorld(t, cfg)
			victim := w.from("192.0.2.1")
			livesFor(w, 61*time.Minute, func() { victim.succeeds("victim") })
			for i := range 40 { // more than the rate lets through
				victim.fails(failedCall{service: "victim", errorType: "E" + letters(i)})
			}
			w.pass(time.Hour)
			written := len(artifacts(t, cfg))
			require.Less(t, written, 40)
			a := w.from(attacker)
			a.sent = 1 << 20
			for i := range 6_000 {
				a.fails(failedCall{service: "invented-" + letters(i) + strings.Repeat("x", 3_000), errorType: "E" + letters(i)})
			}
			for i := range 40 {
				w.pass(10 * time.Minute)
				victim.succeeds("victim")
				victim.fails(failedCall{service: "victim", errorType: "E" + letters(i)})
			}
			w.shutdown()
			counts := map[int64]int{}
			for _, g := range groups(t, cfg) {
				if g.Services[0] == "victim" {
					counts[g.Count]++
				}
			}
			assert.Equal(t, map[int64]int{2: 40}, counts)
		})
	}
}

// TestHeldTracesOfOthers: the spans of a trace that fails do not take the room
// of those of a service that was there before.
func TestHeldTracesOfOthers(t *testing.T) {
	for name, attacker := range map[string]string{"from elsewhere": "192.0.2.66", "over the connection of all": "192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			cfg := waitingConfig(t)
			cfg.limits.bytes = 1 << 20
			w := newWorld(t, cfg)
			victim, a := w.from("192.0.2.1"), w.from(attacker)
			a.sent = 1 << 20
			livesFor(w, 61*time.Minute, func() { victim.succeeds("victim") })
			victim.fails(failedCall{service: "victim", errorType: "E", parent: 9})
			large := map[string]any{}
			for i := range 50 {
				large[fmt.Sprintf("key.%d", i)] = strings.Repeat("v", 4096)
			}
			for i := range 40 {
				a.fails(failedCall{service: "invented-" + letters(i), errorType: "E" + letters(i), attrs: large})
				for j := range 5 {
					c := failedCall{service: "invented-" + letters(i), span: byte(10 + j), attrs: large}
					a.sent-- // of the same trace
					a.sends(c, ptrace.StatusCodeOk)
				}
			}
			victim.sent--
			victim.sends(failedCall{service: "victim", name: "root", span: 9}, ptrace.StatusCodeOk)
			w.pass(10 * time.Second)
			for _, folder := range artifacts(t, cfg) {
				if trace := readTrace(t, folder); trace.Span.Events[0].Attributes["exception.type"] == "E" {
					assert.Equal(t, []string{"root"}, names(trace.Ancestors))
					return
				}
			}
			t.Fatal("the victim's failure has no artifact")
		})
	}
}

// TestLargeBatchOfOthers: where more failed in a batch than is looked at, each of
// its services is.
func TestLargeBatchOfOthers(t *testing.T) {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 10, 20
	w := newWorld(t, cfg)
	td, ld := ptrace.NewTraces(), plog.NewLogs()
	for i := range 4 * detect.MaxFailures {
		c := failedCall{service: "noisy", errorType: "E" + letters(i)}
		c.appendTo(td).SetTraceID(pcommon.TraceID{1, byte(i), byte(i >> 8)})
		c.trace, c.span = byte(i)|1, byte(i>>8)|1
		c.logs(plog.SeverityNumberError).ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	}
	victim := failedCall{service: "victim", errorType: "Seen", trace: 250}
	victim.appendTo(td)
	victim.service, victim.trace = "victim of logs", 252
	victim.logs(plog.SeverityNumberError).ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	w.send(td)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), ld))
	assert.EqualValues(t, 2*(3*detect.MaxFailures+1), dropped(t, w.tel)["batch_limit"])
	w.shutdown()
	marked := map[string]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, span := range rs.ScopeSpans().At(0).Spans().All() {
			if _, ok := span.Attributes().Get("repro.artifact.fingerprint"); ok {
				marked[rs.Resource().Attributes().AsRaw()["service.name"].(string)] = true
			}
		}
	}
	for _, rl := range ld.ResourceLogs().All() {
		if _, ok := rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("repro.artifact.fingerprint"); ok {
			marked[rl.Resource().Attributes().AsRaw()["service.name"].(string)] = true
		}
	}
	assert.Equal(t, map[string]bool{"noisy": true, "victim": true, "victim of logs": true}, marked)
}

// TestQueueOfOthers: what waits to be written of new services leaves room for
// those that are established, however much the rate lets through.
func TestQueueOfOthers(t *testing.T) {
	for name, attacker := range map[string]string{"from elsewhere": "192.0.2.66", "over the connection of all": "192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			cfg := waitingConfig(t)
			cfg.limits.queue = 8
			w := newWorld(t, cfg)
			victim, a := w.from("192.0.2.1"), w.from(attacker)
			a.sent = 1 << 20
			livesFor(w, 61*time.Minute, func() { victim.succeeds("victim") })
			for i := range 20 {
				a.fails(failedCall{service: "invented-" + letters(i), errorType: "E" + letters(i)})
			}
			span := victim.fails(failedCall{service: "victim", errorType: "E"})
			w.pass(10 * time.Second)
			assert.DirExists(t, w.leadsTo(span.Attributes()))
			assert.Len(t, artifacts(t, cfg), 5)
			assert.Zero(t, w.traces.Shared.incidents.Sizes().Newcomers)
		})
	}
}

// TestGatewayStarvesNobody: where one connection carries all services, each has
// its share, the first minute included.
func TestGatewayStarvesNobody(t *testing.T) {
	cfg := starvable(t)
	w := newWorld(t, cfg)
	gateway := w.from("192.0.2.1")
	for i := range 40 {
		gateway.fails(failedCall{service: "noisy", errorType: "E" + letters(i)})
	}
	assert.Less(t, len(artifacts(t, cfg)), cfg.limits.burst)
	livesFor(w, 61*time.Minute, func() {
		gateway.succeeds("noisy")
		gateway.succeeds("quiet")
		gateway.fails(failedCall{service: "noisy", errorType: "E" + letters(gateway.sent)})
	})
	w.pass(0)
	span := gateway.fails(failedCall{service: "quiet", errorType: "RareError"})
	w.pass(0)
	assert.DirExists(t, w.leadsTo(span.Attributes()))
	fresh := gateway.fails(failedCall{service: "fresh", errorType: "RareError"})
	w.pass(0)
	assert.DirExists(t, w.leadsTo(fresh.Attributes()), "who came just now finds something, too")
}

// TestSubjectsAreSenders: who authenticates is known wherever it comes from.
func TestSubjectsAreSenders(t *testing.T) {
	cfg := starvable(t)
	w := newWorld(t, cfg)
	victim := &party{world: w, info: client.Info{Auth: subject("me"), Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}}
	livesFor(w, 61*time.Minute, func() { victim.succeeds("victim") })
	attacker := &party{world: w, sent: 1 << 20, info: client.Info{Auth: subject("other"), Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}}
	flood(attacker)
	victim.info.Addr = &net.TCPAddr{IP: net.IPv4(198, 51, 100, 7)}
	span := victim.fails(failedCall{service: "victim", errorType: "NewError"})
	w.pass(0)
	assert.DirExists(t, w.leadsTo(span.Attributes()))
}

// TestRestartDuringAFlood: what a directory holds of services that were
// established stays theirs after a restart.
func TestRestartDuringAFlood(t *testing.T) {
	cfg := starvable(t)
	cfg.Retention.MaxArtifacts = 10
	w := newWorld(t, cfg)
	victim := w.from("192.0.2.1")
	livesFor(w, 61*time.Minute, func() { victim.succeeds("victim") })
	var paths []string
	for i := range 4 {
		span := victim.fails(failedCall{service: "victim", errorType: "E" + letters(i)})
		paths = append(paths, w.leadsTo(span.Attributes()))
	}
	w.shutdown()

	w = newWorld(t, cfg)
	w.clock.add(2 * time.Hour)
	attacker := w.from("192.0.2.66")
	attacker.sent = 1 << 20
	flood(attacker)
	w.shutdown()
	for _, path := range paths {
		assert.DirExists(t, path)
	}
}
