package scale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// equalFor is how long the counters have to agree, and unequalFor how long they
	// have to differ by the same or spans have come twice, until they count as final: what
	// is on its way is flushed, and kept as zero at first, within that time.
	equalFor   = 5 * time.Second
	unequalFor = 15 * time.Second
)

// outcome is what a check found.
type outcome struct {
	fault string
	// spans are acknowledged, and stored are at the back ends. again came again from the gateway that had
	// sent them before, several from another one, both since the check before.
	spans, stored, again, several int
	// differences are those of the counters of all gateways and those of the single
	// collector, which have arisen since the check before.
	differences, totals counters
}

func (o outcome) String() string {
	return fmt.Sprintf("%s: %d spans stored, %d again, %d at several\n%s", o.fault, o.spans, o.again, o.several, sums(o.differences, o.totals))
}

// check has the clients wait, and requires that every acknowledged span is at a back
// end with its run, and that nobody was paged.
func (f *fleet) check(fault string) outcome {
	f.Helper()
	resume := f.clients.pause(f.T)
	defer resume()
	sent := f.clients.acknowledged()
	for _, stored := range []*store{f.stored, f.onlyStored} {
		require.EventuallyWithT(f, func(c *assert.CollectT) {
			assert.Equal(c, len(sent), stored.has(sent))
		}, patience, poll, "acknowledged spans are lost")
	}
	f.checkRuns(sent)
	o := outcome{fault: fault, spans: len(sent), stored: f.stored.has(sent)}
	enough := equalFor
	if _, again, several := f.stored.count(); again > f.before.again || several > f.before.several {
		enough = unequalFor // a request is counted when its trace is whole
	}
	o.differences, o.totals = f.settleCounters(enough)
	spans, again, several := f.stored.count()
	assert.Equal(f, len(sent), spans, "spans that were not acknowledged")
	o.again, o.several = again-f.before.again, several-f.before.several
	f.before.again, f.before.several = again, several
	differences := o.differences.minus(f.before.differences)
	f.before.differences, o.differences = o.differences, differences
	f.checkAlerts()
	f.checkSamples()
	f.Logf("%s: %s", time.Since(f.began).Round(time.Second), o)
	return o
}

// checkRuns requires that each span has the same run at the back ends.
func (f *fleet) checkRuns(sent []pcommon.SpanID) {
	f.Helper()
	got, want := f.stored.runs(), f.onlyStored.runs()
	others := map[string]int{}
	for _, id := range sent {
		if got[id] != want[id] {
			others[fmt.Sprintf("%s: %q instead of %q", f.onlyStored.spans[id].what, got[id], want[id])]++
		}
	}
	assert.Empty(f, others, "runs of spans")
}

// settleCounters waits until the differences between the counters do not change any
// more, for a time if they are none, and returns them with the counters of the single collector.
func (f *fleet) settleCounters(equal time.Duration) (differences, want counters) {
	f.Helper()
	var last counters
	changed := time.Now()
	require.EventuallyWithT(f, func(c *assert.CollectT) {
		got := maps.Clone(f.ended)
		want = counters{}
		var addresses []string
		for _, g := range f.gateways {
			addresses = append(addresses, at(gatewayIP(g.number), seriesPort))
		}
		if !assert.NoError(c, got.read(f.Context(), addresses...)) || !assert.NoError(c, want.read(f.Context(), f.only.Address(f, "exporters::prometheus"))) {
			return
		}
		differences = got.minus(want)
		if len(want) == 0 || len(want.minus(last)) > 0 || len(differences.minus(f.before.differences)) > 0 && !maps.Equal(f.unsettled, differences) {
			changed = time.Now()
		}
		last, f.unsettled = want, differences
		unchanged := time.Since(changed)
		assert.True(c, unchanged > unequalFor || unchanged > equal && len(differences.minus(f.before.differences)) == 0, "counters change")
	}, patience, time.Second)
	return differences, want
}

// checkAlerts requires that no run was stalled at any time, and that nobody was paged,
// for what the single collector does not say. It says so of runs whose clients a busy
// machine stops for too long. The simulated workers really open their breakers, and their
// calls then fail: a gateway to which they are new does not know that this is usual, as
// docs/limits.md says.
func (f *fleet) checkAlerts() {
	f.Helper()
	for _, selector := range []string{
		`run:state{ml_run_state="stalled"}`, `ALERTS{alertname="RunStalled"}`,
		`ALERTS{severity="page",alertstate="firing",alertname!~"BreakerOpened|ServiceFailing"}`,
	} {
		got, want := f.seen(f.joined, selector), f.seen(f.alone, selector)
		maps.DeleteFunc(got, func(series string, _ bool) bool { return want[series] })
		assert.Empty(f, got, selector)
	}
}

// seen returns the series that a selector has had.
func (f *fleet) seen(prometheus *harness.Prometheus, selector string) map[string]bool {
	f.Helper()
	series, err := prometheus.Series(f.Context(), selector)
	require.NoError(f, err)
	seen := map[string]bool{}
	for _, labels := range series {
		seen[key(labels)] = true
	}
	return seen
}

// checkSamples requires that Prometheus has dropped no sample because two gateways
// write one series.
func (f *fleet) checkSamples() {
	f.Helper()
	for line := range strings.Lines(f.joined.Output()) {
		assert.NotRegexp(f, "Error on ingesting .* sample", line)
	}
}

// checkSignals requires that all signals of a run are at one gateway.
func (f *fleet) checkSignals() {
	f.Helper()
	spans, logs := f.stored.gatewaysOf()
	series := f.gatewaysOfSeries()
	var all, withSeries, withLogs int
	for run, gateways := range spans {
		all++
		assert.Len(f, gateways, 1, "gateways of the spans of %s", run)
		if found, ok := series[run]; ok {
			withSeries++
			assert.Equal(f, gateways, found, "gateways of the metrics of %s", run)
		}
		if found, ok := logs[run]; ok {
			withLogs++
			assert.Equal(f, gateways, found, "gateways of the log records of %s", run)
		}
	}
	f.Logf("%d runs, %d with metrics of their own, %d with log records", all, withSeries, withLogs)
	assert.GreaterOrEqual(f, all, f.size.runs)
	assert.Positive(f, withSeries)
	assert.Positive(f, withLogs)
}

// gatewaysOfSeries returns which gateways show series of each run that no connector
// has derived from spans.
func (f *fleet) gatewaysOfSeries() map[string][]int {
	f.Helper()
	of := map[string]map[int]bool{}
	for _, g := range f.gateways {
		samples, err := harness.Scrape(f.Context(), at(gatewayIP(g.number), seriesPort))
		require.NoError(f, err)
		for _, sample := range samples {
			run, name := sample.Labels["ml_run_id"], sample.Labels["__name__"]
			if run == "" || strings.HasPrefix(name, "ml_") || strings.HasPrefix(name, "traces_span_metrics") {
				continue
			}
			if of[run] == nil {
				of[run] = map[int]bool{}
			}
			of[run][g.number] = true
		}
	}
	return sorted(of)
}

// checkLog requires that what mlgen's log has is what the clients sent, and that each
// rank has as many steps as it logged.
func (f *fleet) checkLog() {
	f.Helper()
	log := f.generator.Stop(f.T)
	f.check("the end")
	sent := map[string]bool{}
	for _, id := range f.clients.acknowledged() {
		sent[id.String()] = true
	}
	steps := map[string]float64{}
	runs := f.stored.runs()
	for _, span := range log.Spans {
		assert.True(f, sent[span.SpanID], "span %s is not acknowledged", span.SpanID)
		run, named := span.Resource["ml.run.id"].(string)
		if !named {
			continue
		}
		if span.Name == "optimizer" {
			steps[fmt.Sprint(run, " ", span.Resource["ml.rank.global"])]++
		}
		var id pcommon.SpanID
		copy(id[:], decode(f.T, span.SpanID))
		assert.Equal(f, run, runs[id], "run of %s", span.SpanID)
	}
	assert.Len(f, sent, len(log.Spans))
	assert.Len(f, steps, 8*f.size.runs)
	samples, err := harness.Scrape(f.Context(), f.only.Address(f, "exporters::prometheus"))
	require.NoError(f, err)
	for _, sample := range harness.Select(samples, "ml_steps_total", nil) {
		of := sample.Labels["ml_run_id"] + " " + sample.Labels["ml_rank_global"]
		if _, ok := steps[of]; !ok {
			// Of another scenario.
			continue
		}
		assert.InDelta(f, steps[of], sample.Value, 0, "steps of %s at the single collector", of)
		delete(steps, of)
	}
	assert.Empty(f, slices.Collect(maps.Keys(steps)), "ranks without steps")
}
