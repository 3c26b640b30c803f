// Package program reads what a resource says of the program that sends.
package program

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// unknownService is the service.name of a resource without one, as in the SDKs.
const unknownService = "unknown_service"

// Read returns the program that a resource names, and how many of its
// two names had invalid UTF-8. Invalid bytes are replaced, because back ends
// refuse them; the program keeps its own series.
func Read(attrs pcommon.Map) (r streams.Resource, repaired int64) {
	r.Service = unknownService
	for key, value := range attrs.All() {
		switch key {
		case mlattr.ServiceName:
			if name, broken := readName(value); name != "" {
				r.Service = name
				repaired += broken
			}
		case mlattr.ServiceNamespace:
			name, broken := readName(value)
			r.Namespace = name
			repaired += broken
		}
	}
	return r, repaired
}

// readName returns a name, and 1 if it had to be repaired.
func readName(v pcommon.Value) (name string, repaired int64) {
	if name, ok := mlattr.ReadText(v); ok || v.Type() != pcommon.ValueTypeStr || v.Str() == "" {
		return name, 0
	}
	raw := v.Str()
	// Replacements lengthen the text, but the end is cut off anyway.
	name, _ = mlattr.ReadText(pcommon.NewValueStr(strings.ToValidUTF8(raw[:min(len(raw), mlattr.MaxText)], "\uFFFD")))
	return name, 1
}

// RunOf returns the run labels of a resource.
func RunOf(facts *vocabulary.Facts) streams.Run {
	id, _ := facts.Run()
	return streams.Run{ID: id, Job: facts.TextAt(vocabulary.SlotJobID), Host: facts.TextAt(vocabulary.SlotHostName), Rank: spanfact.Rank(facts)}
}

// attrProcessStart is the start of a process, which resource detectors set.
const attrProcessStart = "process.creation.time"

// MaxPerStep is the largest accepted number of tokens or samples of a step.
const MaxPerStep = 1 << 40

// maxWorld is the largest accepted number of ranks of a run.
const maxWorld = 1 << 20

// Of reads a resource. If a client's first span is no startup, only the
// start of its process reveals the startup, unless the process serves many
// runs.
func Of(facts *vocabulary.Facts, attrs pcommon.Map) runs.Program {
	p := runs.Program{
		Idles:     facts.Systems.Has(table.IdlesBetweenSpans),
		NoStartup: facts.Systems.Has(table.NoStartup),
		OnDemand:  facts.Systems.Has(table.ManyRuns),
	}
	p.Restarts, p.Numbered = facts.IntAt(vocabulary.SlotRunAttempt)
	if world, ok := facts.IntAt(vocabulary.SlotWorldSize); ok && world > 0 && world <= maxWorld {
		p.World = world
	}
	p.SomeSend = facts.Systems.Has(table.SomeRanksSend)
	if stage, ok := facts.IntAt(vocabulary.SlotRankPipeline); ok {
		p.Stage = strconv.FormatInt(stage, 10)
	}
	if tokens, ok := facts.DoubleAt(vocabulary.SlotJobTokensPerStep); ok && tokens > 0 && tokens <= MaxPerStep {
		p.Tokens = tokens
	}
	if p.OnDemand {
		return p
	}
	if v, ok := attrs.Get(mlattr.ProcessID); ok {
		p.PID = mlattr.ReadPID(v)
	}
	if start, ok := attrs.Get(attrProcessStart); ok {
		if at, err := time.Parse(time.RFC3339Nano, start.Str()); err == nil && at.Unix() > 0 && at.Year() < 2200 {
			p.Born, p.NoStartup = at.UnixNano(), false
		}
	}
	return p
}
