package mllinesconnector

import (
	"context"
	"errors"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/unwrap"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

const (
	// maxLine is the part of a line that is read.
	maxLine = 64 << 10
	// maxSpans is the number of spans from which they are sent before further lines are
	// read: a line can make a thousand.
	maxSpans = 8192
	// maxHeld limits the lines of steps of all processes that wait for others, which take
	// some 300 bytes each.
	maxHeld = 65_536
	// tick is the time between two looks at what waits.
	tick = time.Second
)

// lines makes spans of log records.
type lines struct {
	origins
	next    consumer.Traces
	id      component.ID
	storage *component.ID
	set     *format.Set
	logger  *zap.Logger
	now     func() time.Time
	// telemetry has the connector's own metrics, with the attributes own, or ofFormat for the
	// lines of a format.
	telemetry *metadata.TelemetryBuilder
	own       metric.MeasurementOption
	ofFormat  map[*format.Format]metric.MeasurementOption

	mu       sync.Mutex
	programs programs
	// changed are the processes with spans that were not sent, and waiting those that have
	// something to look at later.
	changed []*process
	// made is the number of their spans since the latest were sent.
	made    int
	waiting map[*process]struct{}
	// held is the number of lines of steps that wait.
	held     int
	readings []format.Reading
	saved    *saved.State

	loop shared.Loop
}

func newLines(set connector.Settings, cfg *Config, from origins, next consumer.Traces) (*lines, error) {
	formats, err := format.New(cfg.Formats)
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	own := attribute.String("connector", set.ID.String())
	l := &lines{
		origins: from, next: next, id: set.ID, storage: cfg.Storage, set: formats, logger: set.Logger, now: time.Now,
		telemetry: telemetry, own: metric.WithAttributes(own), ofFormat: make(map[*format.Format]metric.MeasurementOption),
		programs: programs{most: cfg.MaxStreams, streams: make(map[string]*stream), newest: make(map[string]*stream)}, waiting: make(map[*process]struct{}),
	}
	for _, rule := range formats.Rules() {
		l.ofFormat[rule.Format()] = metric.WithAttributes(own, attribute.String("format", rule.Format().Name))
	}
	return l, telemetry.RegisterConnectorMlLinesStreamsCallback(shared.Gauge(func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return int64(len(l.programs.streams))
	}, l.own))
}

// Capabilities says that requests are not changed.
func (*lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start starts to look at what waits for further lines.
func (l *lines) Start(ctx context.Context, host component.Host) error {
	if err := l.origins.Start(ctx, host); err != nil {
		return err
	}
	if err := l.openStorage(ctx, host); err != nil {
		return err
	}
	l.loop.Start(tick, tick, func(ctx context.Context) {
		l.settle(ctx, false)
		if l.saved != nil {
			l.saved.Save(ctx)
		}
	})
	return nil
}

// Shutdown sends what waits. It returns when nothing more is sent, or when its context
// ends. It is safe without Start.
func (l *lines) Shutdown(ctx context.Context) error {
	l.loop.Finish(ctx)
	l.settle(ctx, true)
	if l.saved != nil {
		l.saved.Close()
		l.saved = nil
	}
	l.telemetry.Shutdown()
	return l.origins.Shutdown(ctx)
}

// settle sends what has waited for long enough, or all.
func (l *lines) settle(ctx context.Context, all bool) {
	if err := l.send(ctx, l.look(all)); err != nil {
		l.logger.Debug("spans of lines were refused", zap.Error(err))
	}
}

// look returns the spans of what has waited for long enough, or of all that waits.
func (l *lines) look(all bool) ptrace.Traces {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for p := range l.waiting {
		l.watching(p, func() { p.settle(now, all) })
		if l.note(p); !p.waits() {
			delete(l.waiting, p)
		}
	}
	l.programs.sweep(now)
	return l.take()
}

func (l *lines) send(ctx context.Context, td ptrace.Traces) error {
	if td.ResourceSpans().Len() == 0 {
		return nil
	}
	return l.next.ConsumeTraces(sender.WithSize(ctx, 0), td) // the size in ctx is that of records
}

// ConsumeLogs reads records and sends the spans that their lines make. If these are
// refused, they are lost: their lines must not be counted twice.
func (l *lines) ConsumeLogs(ctx context.Context, ld plog.Logs) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	send := func() {
		td := l.take()
		l.mu.Unlock()
		err = errors.Join(err, l.send(ctx, td))
		l.mu.Lock()
	}
	now := l.now()
	for _, rl := range ld.ResourceLogs().All() {
		// The records of a resource may be from several files.
		byPath := map[string]member{}
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				text := bodyOf(record.Body())
				if text == "" {
					continue
				}
				file := mlattr.FirstText(record.Attributes(), origin.FilePath)
				of := shared.Entry(byPath, file, func() member {
					o := l.Shared.Of(rl.Resource().Attributes(), record.Attributes())
					return member{l.programs.of(o, now), o.Member}
				})
				if of.stream == nil {
					l.telemetry.ConnectorMlLinesDroppedLines.Add(ctx, 1, l.own)
					continue
				}
				l.readRecord(of, record, text, now, send)
			}
		}
	}
	send()
	return err
}

// bodyOf returns the text of a record: its body, or the message of a body that is a map, as
// that of journald.
func bodyOf(body pcommon.Value) string {
	if body.Type() == pcommon.ValueTypeMap {
		return mlattr.FirstText(body.Map(), "MESSAGE", "message", "log", "msg")
	}
	return body.Str()
}

// member is a stream, and which of its processes has written a file: the two files of stdout
// and stderr are of one stream.
type member struct {
	stream *stream
	name   string
}

// maxKillAge is how old a line of the kernel may be: ids of processes are used again.
const maxKillAge = 10 * time.Minute

// readKill reads a line of the kernel's log: from journald, or from its own file. Other
// files and streams can have any text.
func (l *lines) readKill(record plog.LogRecord, text string, at, now time.Time) {
	ofKernel := path.Base(mlattr.FirstText(record.Attributes(), origin.FilePath)) == "kern.log"
	if body := record.Body(); body.Type() == pcommon.ValueTypeMap {
		ofKernel = mlattr.FirstText(body.Map(), "_TRANSPORT") == "kernel"
	}
	kill, ok := failure.ReadKill(text)
	if !ofKernel || !ok {
		return
	}
	if stated, _, ok := unwrap.Stated(text, now); ok {
		at = stated
	}
	if now.Sub(at) > maxKillAge {
		return
	}
	for _, s := range l.programs.streams {
		if s.origin.Has(kill.Group, kill.PID) && len(mlattr.Where(maps.Values(s.processes), (*process).Trains)) > 0 {
			s.only.failures.Killed(kill.Message)
			s.only.failed, s.only.heard = at, now
			l.waiting[s.only] = struct{}{}
		}
	}
}

// readRecord reads the lines of a record. It sends spans if there are many.
func (l *lines) readRecord(of member, record plog.LogRecord, text string, now time.Time, send func()) {
	at := training.Moment{Time: record.Timestamp().AsTime()}
	if record.Timestamp() == 0 {
		if at.Time, at.Read = now, true; record.ObservedTimestamp() != 0 {
			at.Time = record.ObservedTimestamp().AsTime()
		}
	}
	at.Time = shared.Earlier(at.Time, now)
	if strings.Contains(text, failure.KillBegin) {
		l.readKill(record, text, at.Time, now)
	}
	for rest := text; rest != ""; {
		line := rest
		if end := strings.IndexAny(rest, format.Ends); end >= 0 {
			line, rest = rest[:end], rest[end+1:]
		} else {
			rest = ""
		}
		if line != "" {
			l.readLine(of, line[:min(len(line), maxLine)], at, now)
			if l.made >= maxSpans {
				send()
			}
		}
	}
}

// readLine reads one line, without its end.
func (l *lines) readLine(of member, text string, at training.Moment, now time.Time) {
	line := unwrap.Prefixed(unwrap.Plain(text))
	p := l.programs.processOf(of.stream, &line, of.name)
	l.readings = l.set.Read(line.Text, l.readings[:0])
	for i := range l.readings {
		l.telemetry.ConnectorMlLinesLines.Add(context.Background(), 1, l.ofFormat[l.readings[i].Format()])
	}
	l.watching(p, func() { p.read(line.Text, l.readings, at, now) })
	if l.held > maxHeld {
		l.watching(p, p.Flush)
	}
	l.note(p)
	if p.waits() {
		l.waiting[p] = struct{}{}
	}
}

// watching counts what a change of a process makes and holds.
func (l *lines) watching(p *process, change func()) {
	made, held := p.Made(), p.Held()
	change()
	l.made, l.held = l.made+p.Made()-made, l.held+p.Held()-held
}

// note keeps that a process has spans.
func (l *lines) note(p *process) {
	p = p.writes
	if !p.noted && p.Made() > 0 {
		p.noted = true
		l.changed = append(l.changed, p)
	}
}

// take returns the spans that were not sent.
func (l *lines) take() ptrace.Traces {
	td := ptrace.NewTraces()
	for _, p := range l.changed {
		p.appendTo(td)
	}
	clear(l.changed)
	l.made = 0
	l.changed = l.changed[:0]
	return td
}
