//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// usual is the load of which one number is changed at a time.
var usual = rising{rate: 20_000, runs: 100, traces: 1000}

// rising is a load whose numbers rise.
type rising struct {
	// rate is the number of spans a second, runs and traces how many there are at once.
	rate, runs, traces int
}

// rises measures what a span costs while the rate, the runs and the live traces rise,
// and prints the medians of the turns.
func rises(ctx context.Context, o options, out io.Writer) error {
	if _, err := fmt.Fprintln(out, "| spans a second | runs | live traces | µs of processor time each |\n|---|---|---|---|"); err != nil {
		return err
	}
	loads := []rising{usual}
	for _, rate := range []int{1000, 10_000, 50_000, 100_000} {
		loads = append(loads, rising{rate, usual.runs, usual.traces})
	}
	for _, runs := range []int{10, 1000, 10_000} {
		loads = append(loads, rising{usual.rate, runs, usual.traces})
	}
	for _, traces := range []int{10, 10_000, 100_000} {
		loads = append(loads, rising{usual.rate, usual.runs, traces})
	}
	for _, l := range loads {
		cost, rate, err := l.measure(ctx, o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "| %.0f | %d | %d | %.2f |\n", rate, l.runs, l.traces, cost); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the processor time of a span in µs, and how many were sent in a
// second, which is less than l.rate where the collector does not answer in time.
func (l rising) measure(ctx context.Context, o options) (cost, rate float64, err error) {
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	of := load{
		method: loads["traces"].method, count: countSpans,
		request: func(random *rand.Rand) ([]byte, error) {
			return ptraceotlp.NewExportRequestFromTraces(l.request(random)).MarshalProto()
		},
	}
	sink, err := newSink(of)
	if err != nil {
		return 0, 0, err
	}
	defer sink.stop()
	o.variants = filepath.Join(o.variants, "traces")
	v, err := startVariant(ctx, o, of, "whole", sink.address, directory)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = v.stop() }()
	// Nearly all runs and traces are known before the first turn that counts.
	known := max(l.runs/resourcesOfRequest, l.traces/itemsOfRequest) * 4
	warm, err := encode(of, 1, max(known, 50))
	if err != nil {
		return 0, 0, err
	}
	if _, err := v.turn(ctx, warm, sink); err != nil {
		return 0, 0, err
	}
	var costs []float64
	spans, took := 0, time.Duration(0)
	for round := range o.rounds {
		requests, err := encode(of, uint64(round+2), max(5*l.rate/itemsOfRequest, 4)) // #nosec G115 -- a seed
		if err != nil {
			return 0, 0, err
		}
		before, err := v.processorTime()
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		every := time.NewTicker(time.Duration(itemsOfRequest) * time.Second / time.Duration(l.rate))
		for _, request := range requests {
			<-every.C
			if err := v.send(ctx, request); err != nil {
				every.Stop()
				return 0, 0, err
			}
		}
		every.Stop()
		took += time.Since(began)
		spans += len(requests) * itemsOfRequest
		after, err := v.processorTime()
		if err != nil {
			return 0, 0, err
		}
		costs = append(costs, (after-before).Seconds()*1e6/float64(len(requests)*itemsOfRequest))
	}
	slices.Sort(costs)
	return costs[len(costs)/2], float64(spans) / took.Seconds(), nil
}

// resourcesOfRequest is the number of processes whose spans a gateway gets at once.
const resourcesOfRequest = 16

// request has spans of training and of calls to a model, of processes of any of the
// runs, in any of the traces.
func (l rising) request(random *rand.Rand) ptrace.Traces {
	td := ptrace.NewTraces()
	for range resourcesOfRequest {
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), clients[0].resource, "")
		rs.Resource().Attributes().PutStr("ml.run.id", "run-"+strconv.Itoa(random.IntN(l.runs)))
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i := range itemsOfRequest / resourcesOfRequest {
			call := &clients[0].spans[i%len(clients[0].spans)]
			if i%8 == 7 {
				call = &clients[5].spans[1]
			}
			span := spans.AppendEmpty()
			span.SetName(call.name)
			var trace [16]byte
			binary.NativeEndian.PutUint64(trace[:], uint64(random.IntN(l.traces))+1) // #nosec G115 -- not negative
			span.SetTraceID(trace)
			span.SetSpanID(spanID(random.Uint64() | 1))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-20 * time.Millisecond)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			put(span.Attributes(), call.attributes, strconv.FormatUint(random.Uint64(), 36))
		}
	}
	return td
}
