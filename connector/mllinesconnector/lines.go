package mllinesconnector

import (
	"context"
	"errors"
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
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// maxLine is the part of a line that is read, and maxPartial what is kept of a line
	// whose rest follows.
	maxLine, maxPartial = 64 << 10, 64 << 10
	// maxSpans is the number of spans from which they are sent before further lines are
	// read: a line can make a thousand.
	maxSpans = 8192
	// maxHeld limits the lines of steps of all processes that wait for others, which take
	// some 300 bytes each, and maxProcesses the processes behind prefixes of launchers.
	// Lines of further ones are read as those of their stream.
	maxHeld, maxProcesses = 65_536, 16_384
	// tick is the time between two looks at what waits.
	tick = time.Second
	// idleTimeout is how long a stream is remembered without lines.
	idleTimeout = 12 * time.Hour
	// unused is how long a stream was not used that may be forgotten for another one, and
	// looked at are how many are compared.
	unused, lookedAt = time.Minute, 16
)

// lines makes spans of log records.
type lines struct {
	*known
	next      consumer.Traces
	cfg       *Config
	set       *format.Set
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	of        attribute.KeyValue
	now       func() time.Time

	mu sync.Mutex
	// streams are by the owners of their origins.
	streams map[string]*stream
	// changed are the processes with spans that were not sent, and waiting those that have
	// something to look at later.
	changed []*process
	// made is the number of their spans since the latest were sent.
	made    int
	waiting map[*process]struct{}
	// held is the number of lines of steps that wait, and processes that of processes with a
	// prefix.
	held, processes int
	swept           time.Time
	readings        []format.Reading
	found           map[*format.Format]int64
	dropped         int64
	// restored are processes from before the start of which no line has come since, and
	// exported what was exported, nil if it has changed.
	restored map[string]keptProcess
	exported []byte
	saved    *saved.State

	stop       chan struct{}
	cancelSend context.CancelFunc
	running    sync.WaitGroup
}

func newLines(set connector.Settings, cfg *Config, origins *known, next consumer.Traces) (*lines, error) {
	formats, err := format.New(cfg.Formats)
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	l := &lines{
		known: origins, next: next, cfg: cfg, set: formats, logger: set.Logger, telemetry: telemetry, now: time.Now,
		of:      attribute.String("connector", set.ID.String()),
		streams: make(map[string]*stream), waiting: make(map[*process]struct{}), found: make(map[*format.Format]int64),
	}
	return l, telemetry.RegisterConnectorMlLinesStreamsCallback(func(_ context.Context, o metric.Int64Observer) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		o.Observe(int64(len(l.streams)), metric.WithAttributes(l.of))
		return nil
	})
}

// Capabilities says that requests are not changed.
func (*lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start starts to look at what waits for further lines.
func (l *lines) Start(ctx context.Context, host component.Host) error {
	if err := l.known.Start(ctx, host); err != nil {
		return err
	}
	if err := l.openStorage(ctx, host); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop, l.cancelSend = make(chan struct{}), cancel
	l.running.Go(func() { l.watch(ctx) })
	return nil
}

// Shutdown sends what waits. It returns when nothing more is sent, or when its context
// ends. It is safe without Start.
func (l *lines) Shutdown(ctx context.Context) error {
	if l.stop != nil {
		close(l.stop)
		defer context.AfterFunc(ctx, l.cancelSend)()
		l.running.Wait()
		l.cancelSend()
		l.stop = nil
		if l.saved != nil {
			l.saved.Close()
		}
	}
	l.telemetry.Shutdown()
	return l.known.Shutdown(ctx)
}

func (l *lines) watch(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for last := false; !last; {
		select {
		case <-ticker.C:
		case <-l.stop:
			last = true
		}
		if err := l.send(ctx, l.look(last)); err != nil {
			l.logger.Debug("spans of lines were refused", zap.Error(err))
		}
		if l.saved != nil && !last {
			l.saved.Save(ctx)
		}
	}
}

// look returns the spans of what has waited for long enough, or of all that waits.
func (l *lines) look(all bool) ptrace.Traces {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for p := range l.waiting {
		l.exported = nil
		l.watching(p, func() { p.settle(now, all) })
		if l.note(p); !p.waits() {
			delete(l.waiting, p)
		}
	}
	if now.Sub(l.swept) >= unused {
		l.swept = now
		for key, s := range l.streams {
			if now.Sub(s.seen) > idleTimeout {
				l.forget(key)
			}
		}
	}
	return l.take()
}

func (l *lines) send(ctx context.Context, td ptrace.Traces) error {
	if td.ResourceSpans().Len() == 0 {
		return nil
	}
	return l.next.ConsumeTraces(ctx, td)
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
				file := origin.Text(record.Attributes(), origin.FilePath)
				of, known := byPath[file]
				if !known {
					of = l.streamOf(rl.Resource().Attributes(), record.Attributes(), now)
					byPath[file] = of
				}
				if of.stream == nil {
					l.dropped++
					continue
				}
				l.readRecord(of, record, text, now, send)
			}
		}
	}
	l.count()
	send()
	return err
}

// count adds what was found to the telemetry.
func (l *lines) count() {
	ctx := context.Background()
	for f, n := range l.found {
		l.telemetry.ConnectorMlLinesLines.Add(ctx, n, metric.WithAttributes(l.of, attribute.String("format", f.Name)))
	}
	clear(l.found)
	if l.dropped > 0 {
		l.telemetry.ConnectorMlLinesDroppedLines.Add(ctx, l.dropped, metric.WithAttributes(l.of))
		l.dropped = 0
	}
}

// bodyOf returns the text of a record: its body, or the message of a body that is a map, as
// that of journald.
func bodyOf(body pcommon.Value) string {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return body.Str()
	case pcommon.ValueTypeMap:
		for _, key := range [...]string{"MESSAGE", "message", "log", "msg"} {
			if text := origin.Text(body.Map(), key); text != "" {
				return text
			}
		}
	}
	return ""
}

// member is a stream, and which of its processes has written a file.
type member struct {
	stream *stream
	name   string
}

// streamOf returns the stream of a record of a resource, none beyond the limit. The two
// files of stdout and stderr are of one.
func (l *lines) streamOf(resource, record pcommon.Map, now time.Time) member {
	o := l.origins.Of(resource, record)
	s := l.streams[o.Owner]
	if s == nil {
		if len(l.streams) >= l.cfg.MaxStreams && !l.makeRoom(now) {
			return member{}
		}
		s = newStream(o)
		l.restore(s.only)
		l.streams[o.Owner] = s
	}
	s.seen = now
	return member{s, o.Member}
}

// makeRoom forgets the oldest of a few streams, if it was not used for a while.
func (l *lines) makeRoom(now time.Time) bool {
	oldest, n := "", 0
	for key, s := range l.streams {
		if oldest == "" || s.seen.Before(l.streams[oldest].seen) {
			oldest = key
		}
		if n++; n == lookedAt {
			break
		}
	}
	if oldest == "" || now.Sub(l.streams[oldest].seen) < unused {
		return false
	}
	l.forget(oldest)
	return true
}

// forget removes a stream. What waits of it is still sent.
func (l *lines) forget(key string) {
	l.processes -= len(l.streams[key].processes) - 1
	delete(l.streams, key)
	l.exported = nil
}

// maxKillAge is how old a line of the kernel may be: ids of processes are used again.
const maxKillAge = 10 * time.Minute

// readKill reads a line of the kernel's log: from journald, or from its own file. Other
// files and streams can have any text.
func (l *lines) readKill(record plog.LogRecord, text string, at, now time.Time) {
	ofKernel := path.Base(origin.Text(record.Attributes(), origin.FilePath)) == "kern.log"
	if body := record.Body(); body.Type() == pcommon.ValueTypeMap {
		ofKernel = origin.Text(body.Map(), "_TRANSPORT") == "kernel"
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
	for _, s := range l.streams {
		if s.origin.Has(kill.Group, kill.PID) && s.trains() {
			s.only.failures.Killed(kill.Message)
			s.only.failed, s.only.heard = at, now
			l.waiting[s.only] = struct{}{}
		}
	}
}

// readRecord reads the lines of a record. It sends spans if there are many.
func (l *lines) readRecord(of member, record plog.LogRecord, text string, now time.Time, send func()) {
	r := unwrap.Wrapped(text)
	if r.Stream == "" {
		r.Stream = origin.Text(record.Attributes(), origin.IOStream)
	}
	at := training.Moment{Time: r.Time}
	if at.Time.IsZero() {
		at.Time = record.Timestamp().AsTime()
		if record.Timestamp() == 0 {
			if at.Time, at.Read = now, true; record.ObservedTimestamp() != 0 {
				at.Time = record.ObservedTimestamp().AsTime()
			}
		}
	}
	if at.Time.After(now) {
		at.Time = now
	}
	if !of.stream.join(&r) {
		return
	}
	if strings.Contains(r.Text, failure.KillBegin) {
		l.readKill(record, r.Text, at.Time, now)
	}
	for rest := r.Text; rest != ""; {
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
	p := of.stream.processOf(&line, of.name, &l.processes, l.restore)
	l.readings = l.set.Read(line.Text, l.readings[:0])
	if len(l.readings) > 0 {
		l.exported = nil
	}
	for i := range l.readings {
		l.found[l.readings[i].Format()]++
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
