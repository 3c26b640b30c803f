// Package kernellog reads the kernel's log, /dev/kmsg, and what the NVIDIA drivers
// write there about errors: of GPUs (XID), of NVSwitches (SXid), and GPUs that fell
// off the bus without a code.
package kernellog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// State is what is known about the kernel's log.
type State string

// The states.
const (
	// OK means that the log is read.
	OK State = "ok"
	// Denied means that the permission to read it is missing.
	Denied State = "denied"
	// Absent means that there is no such log.
	Absent State = "absent"
	// Failed means that it cannot be read for another reason.
	Failed State = "failed"
)

// States lists every state in the order of reports.
var States = []State{OK, Denied, Absent, Failed}

const (
	// reopenInterval is the wait before a log is opened again that cannot be read.
	reopenInterval = time.Minute
	// maxFailures bounds the reads without a record, one after the other, that are
	// no error. A log has one after each gap.
	maxFailures = 100
)

// Options are the settings of a Reader.
type Options struct {
	// Path is the log's file, /dev/kmsg.
	Path string
	// Report is called for each report, and Lost with the number of records that the
	// kernel overwrote before they were read. One goroutine calls them. They must not
	// block.
	Report func(Report)
	Lost   func(records int64)
	// Logger gets one line for each change of the state.
	Logger *zap.Logger
	// open replaces the opening of Path in tests. A Read returns one record, and
	// fs.ErrClosed after Close.
	open func(path string) (io.ReadCloser, error)
}

// Reader reads the kernel's log from its opening on: errors before it were reported
// before, or are no longer news.
type Reader struct {
	opts Options
	loop shared.Loop

	mu    sync.Mutex
	state State
}

// NewReader returns a reader that has not started.
func NewReader(opts Options) *Reader {
	if opts.open == nil {
		opts.open = open
	}
	return &Reader{opts: opts}
}

// Start begins to read. It does not wait. A log that cannot be read is opened again after
// a while.
func (r *Reader) Start() {
	r.loop.Start(0, reopenInterval, func(ctx context.Context) {
		if err := r.read(ctx, &stream{report: r.opts.Report, lost: r.opts.Lost}); ctx.Err() == nil {
			r.change(stateOf(err), err)
		}
	})
}

// Shutdown stops reading, and returns when no function of the options runs any
// more. It is safe to call twice, and without Start.
func (r *Reader) Shutdown() { _ = r.loop.Stop(context.Background()) }

// State returns the present state, empty before the log was opened.
func (r *Reader) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// read opens the log and reads it until it fails or the end of ctx closes it.
func (r *Reader) read(ctx context.Context, records *stream) error {
	opened, err := r.opts.open(r.opts.Path)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = opened.Close() })()
	defer func() { _ = opened.Close() }()
	if ctx.Err() != nil {
		return fs.ErrClosed
	}
	r.change(OK, nil)
	for {
		if err := records.next(opened); err != nil {
			return err
		}
	}
}

// stateOf returns the state after an error of opening or reading.
func stateOf(err error) State {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return Absent
	}
	return Failed
}

// change sets the state, and logs if it is another one.
func (r *Reader) change(state State, err error) {
	r.mu.Lock()
	before := r.state
	r.state = state
	r.mu.Unlock()
	if before == state {
		return
	}
	fields := []zap.Field{zap.String("path", r.opts.Path), zap.String("state", string(state)), zap.Error(err)}
	switch state {
	case OK:
		r.opts.Logger.Info("The kernel's log is read for errors of GPUs and NVSwitches", fields[:1]...)
	case Denied:
		r.opts.Logger.Info("The kernel's log cannot be read: it needs root, or the capability SYSLOG and access to the device. Errors of GPUs are known only from NVML, those of NVSwitches not at all", fields...)
	default:
		r.opts.Logger.Info("The kernel's log cannot be read. Errors of GPUs are known only from NVML, those of NVSwitches not at all", fields...)
	}
}

// stream turns records into reports.
type stream struct {
	report func(Report)
	lost   func(int64)
	// sequence is the number of the last record, and begun is true once there was one.
	sequence uint64
	begun    bool
	// failures counts reads without a record, one after the other.
	failures int
	buffer   [maxRecord]byte
}

// next reads one record. That the kernel overwrote records, or has one that is too
// long, is no error.
func (s *stream) next(from io.Reader) error {
	n, err := from.Read(s.buffer[:])
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EINTR):
		return s.failed(err)
	case err != nil:
		return err
	}
	line, sequence, ok := lineOf(string(s.buffer[:n]))
	if !ok {
		return s.failed(errors.New("the file is not the kernel's log"))
	}
	s.failures = 0
	if missing := sequence - s.sequence - 1; s.begun && sequence > s.sequence+1 {
		s.lost(int64(min(missing, 1<<32))) // #nosec G115 -- it is bounded
	}
	s.sequence, s.begun = sequence, true
	if report, found := readLine(line); found {
		s.report(report)
	}
	return nil
}

// failed counts a read without a record, and returns its error if there were too many.
func (s *stream) failed(err error) error {
	if s.failures++; s.failures > maxFailures {
		return err
	}
	return nil
}
