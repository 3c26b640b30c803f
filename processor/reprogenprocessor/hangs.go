package reprogenprocessor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/evidence"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/group"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	// gatherTimeout is how long the evidence of one hang may take.
	gatherTimeout = 30 * time.Second
	// maxHangs is how many hangs wait; each gathers once, one after the other. What comes within
	// addsFor is added to the evidence of as many, and as many verdicts are remembered.
	maxHangs, addsFor = 16, time.Hour
	// maxGathered is of how many runs is known that their evidence was gathered.
	maxGathered = 256
	// maxLines is how many log records are remembered, of at most maxLine bytes.
	maxLines, maxLine = 256, 512
	// hangKind is the kind of a group of hangs.
	hangKind = "hang"
)

// hangs gathers the evidence of runs that hang.
type hangs struct {
	gatherer *evidence.Gatherer
	gpus     *gpustate.State
	writer   *writer
	waiting  chan evidence.Hang
	// state has what the collector's components left out. It is nil before the start.
	state *shared.State

	// gathered has when the evidence of each run was gathered last, and open the evidence to
	// which is added what comes later.
	gathered *simplelru.LRU[string, time.Time]
	open     []*evidence.Bundle

	mu       sync.Mutex
	lines    []string                                 // of log records, the newest last
	verdicts *simplelru.LRU[string, evidence.Verdict] // by run
	// elsewhere has what a gateway says, which knows the dumps of all hosts.
	elsewhere *simplelru.LRU[string, evidence.Verdict]
}

func newHangs(cfg *EvidenceConfig, gpus *gpustate.State, w *writer) *hangs {
	gathered, _ := simplelru.NewLRU[string, time.Time](maxGathered, nil) // fails for a size of 0
	verdicts, _ := simplelru.NewLRU[string, evidence.Verdict](maxHangs, nil)
	elsewhere, _ := simplelru.NewLRU[string, evidence.Verdict](maxGathered, nil)
	return &hangs{
		gatherer: evidence.New(cfg.RootPath, cfg.FlightRecorder), gpus: gpus, writer: w, waiting: make(chan evidence.Hang, maxHangs),
		gathered: gathered, verdicts: verdicts, elsewhere: elsewhere,
	}
}

// observe looks at log records for hangs that begin, and remembers of the others those that may
// say why: warnings and errors. It never blocks.
func (h *hangs) observe(ctx context.Context, ld plog.Logs) {
	own := sender.From(ctx).Kind == sender.Own // nobody else makes this host gather
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if h.writer.cfg.CaptureContent && record.SeverityNumber() >= plog.SeverityNumberWarn && record.Body().Type() == pcommon.ValueTypeStr {
					h.remember(rl.Resource().Attributes(), record)
				}
				if own && record.EventName() == evidence.WaitEvent {
					h.conclude(h.verdicts, evidence.VerdictOf(record))
				} else if own { // the evidence has the record of the hang, too
					h.await(ctx, rl.Resource().Attributes(), record)
				}
			}
		}
	}
}

// await lets a hang wait for its evidence, if a record says one.
func (h *hangs) await(ctx context.Context, resource pcommon.Map, record plog.LogRecord) {
	hang, ok := evidence.HangOf(resource, record)
	if !ok {
		return
	}
	select {
	case h.waiting <- hang:
	default:
		h.writer.dropped(ctx, 1, dropQueueFull)
	}
}

// conclude remembers which ranks wait for which, here or elsewhere. Of what is said of one moment,
// the first has the most evidence.
func (h *hangs) conclude(to *simplelru.LRU[string, evidence.Verdict], said evidence.Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, _ := to.Get(said.Run); said.At.After(last.At) {
		to.Add(said.Run, said)
	}
}

// verdictOf returns which ranks of a hang wait for which, "" if that is unknown. That of an unknown
// run counts where no other run hangs.
func (h *hangs) verdictOf(hang *evidence.Hang) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if said, ok := h.elsewhere.Get(hang.Run); ok && !said.At.Before(hang.Onset) {
		return said.Text
	}
	said, ok := h.verdicts.Get(hang.Run)
	if !ok && !slices.ContainsFunc(h.open, func(b *evidence.Bundle) bool { return b.Run != hang.Run }) {
		said, _ = h.verdicts.Get("")
	}
	if said.At.Before(hang.Onset) {
		return "" // of an earlier hang
	}
	return said.Text
}

func (h *hangs) remember(resource pcommon.Map, record plog.LogRecord) {
	body := strings.ReplaceAll(mlattr.CutText(record.Body().Str(), maxLine), "\n", " ")
	line := strings.Join([]string{record.Timestamp().AsTime().Format(time.RFC3339), record.SeverityNumber().String(), mlattr.FirstText(resource, mlattr.ServiceName), body}, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = shared.AppendNewest(h.lines, line, maxLines)
}

// gather gathers the evidence of the hangs that wait, and adds what comes later, until ctx ends.
func (h *hangs) gather(ctx context.Context) {
	later := time.Tick(h.writer.cfg.limits.later)
	for {
		select {
		case <-ctx.Done():
			return
		case hang := <-h.waiting:
			h.write(ctx, &hang)
		case <-later:
			h.add()
		}
	}
}

// left returns lines about what the collector's components left out: what is missing in the
// evidence may be that.
func (h *hangs) left() (lines []string) {
	all := h.state.Notices()
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		for _, notice := range all[owner] {
			if notice.Count > 0 || !notice.Since.IsZero() {
				lines = append(lines, fmt.Sprintf("%s: %s (%d). %s", owner, notice.What, notice.Count, notice.Why))
			}
		}
	}
	return lines
}

// write gathers the evidence of a hang, and writes it as an artifact of the group of its run.
func (h *hangs) write(ctx context.Context, hang *evidence.Hang) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	h.mu.Lock()
	log := slices.Clone(h.lines)
	h.mu.Unlock()
	if at, _ := h.gathered.Get(hang.Run); hang.Elsewhere && at.After(hang.Onset) {
		return
	}
	bundle, files := h.gatherer.Gather(ctx, hang, h.verdictOf(hang), h.gpus.Of(hang.Run, h.writer.now()), log, h.left())
	if len(files) == 0 {
		return
	}
	h.gathered.Add(hang.Run, hang.Detected)
	of := group.Digest(hang.Kind, hang.Service, hang.Run)
	name := store.ArtifactName(hang.Detected, group.Digest(hang.ID, hang.Onset.String())+group.Digest(hang.ID), of)
	err := h.writer.disk.Write(of, name, share.OriginOf(share.SenderOf(sender.ID{}), hang.Service), files)
	if err == nil {
		err = h.writer.disk.WriteGroup(store.Group{
			Fingerprint: of, Kind: hangKind, Type: hang.Kind, Message: redact.Text(hang.Text), Count: 1,
			FirstSeen: hang.Onset, LastSeen: hang.Detected, Services: []string{hang.Service}, Exemplars: []string{name},
		})
	}
	if err != nil {
		h.writer.dropped(ctx, 1, dropWriteError)
		h.writer.warn("The evidence of a hang could not be written", err)
		return
	}
	bundle.Group, bundle.Name, bundle.At = of, name, h.writer.now()
	h.open = slices.DeleteFunc(h.open, func(b *evidence.Bundle) bool { return b.Group == of }) // what comes is of the new hang
	h.open = append(h.open[max(0, len(h.open)+1-maxHangs):], bundle)
	h.writer.telemetry.ProcessorReproGenWritten.Add(ctx, 1, h.writer.own)
	h.writer.enforce()
	h.writer.logger.Info("Gathered the evidence of a hang", zap.String("run", hang.Run), zap.String("path", of+"/"+name))
}

// add adds what has come to the evidence of the last hour.
func (h *hangs) add() {
	h.open = slices.DeleteFunc(h.open, func(b *evidence.Bundle) bool { return h.writer.now().Sub(b.At) > addsFor })
	if len(h.open) == 0 {
		return
	}
	listed := h.gatherer.Listed()
	for _, b := range h.open {
		if files := b.Later(listed, h.verdictOf(b.Hang)); len(files) > 0 {
			if err := h.writer.disk.Add(b.Group, b.Name, files); err != nil {
				h.writer.warn("Nothing could be added to the evidence of a hang", err)
			}
			h.writer.enforce()
		}
	}
}
