package mllinesconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/unwrap"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// quiet is how long nothing follows the failure that ended a process.
	quiet = 3 * time.Second
	// earliest is the earliest time that a line states, in seconds since 1970: in 2001.
	earliest = 1e9
	// zoneStep is the difference of time zones.
	zoneStep = 15 * time.Minute
)

// stream is a file or the output of a container.
type stream struct {
	origin *origin.Origin
	seen   time.Time
	// after is the end of the newest step of the attempt before, zero if none is known.
	after time.Time
	// processes are by their prefixes, and only is the one without.
	processes map[string]*process
	only      *process
}

// end returns the end of the newest step of the processes, zero if there is none.
func (s *stream) end() (end time.Time) {
	if s == nil {
		return end
	}
	for _, p := range s.processes {
		end = shared.Later(end, p.End)
	}
	return end
}

// process is a process that prints.
type process struct {
	// Process is that of the stream's only process where the rank in the job is unknown:
	// the ranks of a host print the same steps, which count once.
	*training.Process
	// key tells the process from all others.
	key string
	// writes has the resource of the spans: the process itself, or the stream's only one.
	writes          *process
	stream          *stream
	rank, localRank int64
	failures        failure.Scanner
	// failed is when the newest line of a failure was printed, and heard when it came.
	failed, heard time.Time
	// block is a line whose values follow in others.
	block   *format.Reading
	blockAt training.Moment
	blockIn time.Time
	// zone is what is added to the times that the program states, known with zoned.
	zone  time.Duration
	zoned bool
	// noted is true while the process is among those whose spans are to be sent.
	noted bool
}

func newProcess(s *stream, prefix string, rank, localRank int64) *process {
	p := &process{key: s.origin.Owner + prefix, stream: s, rank: rank, localRank: localRank}
	if p.writes = p; s.only != nil && rank < 0 {
		p.writes, p.Process = s.only, s.only.Process
	} else {
		p.Process = training.NewProcess(p.key)
		p.After = s.after
	}
	return p
}

// waits reports whether the process has something that further lines may decide.
func (p *process) waits() bool { return p.block != nil || p.Waits() || p.failures.Found() != nil }

// read reads a line.
func (p *process) read(line string, readings []format.Reading, at training.Moment, now time.Time) {
	if p.block != nil {
		if p.block.Continue(line) {
			return
		}
		p.endBlock(now)
	}
	if p.failures.Read(line) {
		p.failed, p.heard = at.Time, now
		return
	}
	if len(readings) == 0 {
		return
	}
	moment := p.moment(line, at)
	for i := range readings {
		r := &readings[i]
		if own, ok := r.Get(format.At); ok && own > earliest && own < float64(now.Unix()+1) {
			moment = training.Moment{Time: time.UnixMilli(int64(own * 1000)).UTC()}
		}
		switch r.Kind() {
		case format.Step, format.Numbers:
			// It goes on: the failure was handled.
			p.failures.Reset()
		case format.Start, format.Restore, format.Resume, format.Restored:
			p.fail()
		}
		if r.Block != "" {
			block := *r
			p.block, p.blockAt, p.blockIn = &block, moment, now
			continue
		}
		p.Read(r, moment, now)
	}
}

func (p *process) endBlock(now time.Time) {
	p.Read(p.block, p.blockAt, now)
	p.block = nil
}

// fail ends the training with the failure that was found.
func (p *process) fail() {
	f := p.failures.Found()
	if f == nil {
		return
	}
	p.failures.Reset()
	if !p.Trains() && !f.Evident {
		return
	}
	at := p.failed
	if own := f.Time.Add(p.zone); !f.Time.IsZero() && own.Before(at) && at.Sub(own) < time.Hour {
		at = own
	}
	f.LocalRank, f.Host = p.localRank, p.stream.origin.HostOf(f.Host)
	p.Fail(f, at)
}

// settle ends what has waited for long enough, or all.
func (p *process) settle(now time.Time, all bool) {
	if p.block != nil && (all || now.Sub(p.blockIn) >= tick) {
		p.endBlock(now)
	}
	p.Tick(now, all)
	if p.failures.Found() != nil && (all || now.Sub(p.heard) >= quiet) {
		p.fail()
	}
}

// moment returns when a line was printed that was received at a time: as the program
// states it, in the time zone in which the first such time is the nearest to the latter.
func (p *process) moment(line string, at training.Moment) training.Moment {
	own, exact, ok := unwrap.Stated(line, at.Time)
	if !ok {
		return at
	}
	if !p.zoned {
		if off := at.Time.Sub(own).Round(zoneStep); (at.Time.Sub(own)-off).Abs() < 5*time.Second && off.Abs() <= 14*time.Hour {
			p.zone = off
		}
		p.zoned = true
	}
	if own = own.Add(p.zone); own.After(at.Time.Add(time.Second)) {
		return at
	}
	return training.Moment{Time: own, Late: exact}
}

// appendTo moves the process's spans, with its resource.
func (p *process) appendTo(td ptrace.Traces) {
	if p.noted = false; p.Made() == 0 {
		return
	}
	rs := td.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	p.stream.origin.Resource.CopyTo(attrs)
	if !p.stream.origin.HasService {
		attrs.PutStr(mlattr.ServiceName, p.Name())
	}
	if p.rank >= 0 {
		attrs.PutInt(mlattr.RankGlobal, p.rank)
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(metadata.ScopeName)
	p.MoveTo(ss.Spans())
}
