package ncclreceiver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/communicator"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/dump"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/job"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

const (
	// othersEvery is how many intervals pass between two queries while other hosts
	// lead all jobs.
	othersEvery = 10
	// behindPolls is how many queries in a row must find the same counts before the
	// ranks with lower counts than others are behind: at least three intervals.
	behindPolls = 4
	// forgetAfter is the number of intervals without an answer about a communicator
	// after which it is forgotten. It is longer than othersEvery.
	forgetAfter = 30
	// maxAnswerSize is the largest answer in bytes. A rank has some 600 in each of its
	// communicators.
	maxAnswerSize = 64 << 20
	// maxProcesses limits the processes of the host that are asked for their ranks.
	maxProcesses = 1 << 16
	// timeout is how long NCCL waits for the other processes of the job. A query takes at
	// most twice as long and 4s more.
	timeout = 5 * time.Second
	// answered is the outcome of a query without an error.
	answered = "answered"
)

// poller asks NCCL and looks for dumps, for the metrics and the logs of one receiver.
// One goroutine does all of it.
type poller struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	self      attribute.KeyValue
	metrics   *metricsOutlet
	logs      *logsOutlet

	client    ras.Client
	tracker   *communicator.Tracker
	dumps     *dump.Watcher
	jobs      flightrecorder.Jobs
	processes *workload.Processes
	addresses func() map[netip.Addr]bool

	// last is the job that answered last, nil before, and answered when it did; other
	// is when one of another run did. led is when a job answered that this host leads,
	// and skip the number of intervals without a query.
	last                 *job.Job
	answered, other, led time.Time
	skip                 int
	outcome              string

	loop shared.Loop
}

func newPoller(cfg *Config, set receiver.Settings) (*poller, error) {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "tcp", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &poller{
		cfg: cfg, settings: set, telemetry: telemetry,
		self:      attribute.String("receiver", set.ID.String()),
		client:    ras.Client{Endpoint: cfg.Endpoint, Timeout: timeout, MaxSize: maxAnswerSize},
		tracker:   communicator.NewTracker(behindPolls),
		dumps:     dump.NewWatcher(cfg.RootPath, cfg.FlightRecorder, time.Now()),
		processes: workload.NewNamespaceProcesses(cfg.RootPath),
		addresses: ownAddresses,
	}
	host := workload.HostName(cfg.RootPath)
	p.metrics = &metricsOutlet{builder: metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set), report: report, host: host}
	p.logs = &logsOutlet{builder: metadata.NewLogsBuilder(cfg.LogsBuilderConfig, set), report: report, host: host, lost: func(n int) {
		telemetry.ReceiverNcclDroppedRecords.Add(context.Background(), int64(n), metric.WithAttributes(p.self))
	}, pending: plog.NewLogs()}
	return p, nil
}

// Start implements shared.Object.
func (p *poller) Start(context.Context, component.Host) error {
	p.loop.Start(p.cfg.initialDelay, p.cfg.CollectionInterval, func(ctx context.Context) { p.poll(ctx, time.Now()) })
	return nil
}

// Shutdown implements shared.Object.
func (p *poller) Shutdown(ctx context.Context) error {
	defer p.telemetry.Shutdown()
	return p.loop.Stop(ctx)
}

// poll asks once, looks for dumps, and sends what was found.
func (p *poller) poll(ctx context.Context, now time.Time) {
	if p.skip > 0 {
		p.skip--
	} else {
		p.ask(ctx, now)
	}
	p.compare(p.dumps.Scan(), p.addresses(), now)
	p.logs.send(ctx)
}

// compare reports dumps, and what those of each job say together.
func (p *poller) compare(dumps []dump.Dump, addresses map[netip.Addr]bool, now time.Time) {
	if len(dumps) == 0 {
		return
	}
	jobs, ranks := make(map[string]string), p.runsOfRanks(dumps)
	for _, found := range dumps {
		run := cmp.Or(p.runOf(found.Rank, addresses, now), ranks[jobRank{found.Job, found.Rank}])
		jobs[found.Job] = cmp.Or(run, jobs[found.Job])
		p.logs.dump(&found, run, p.read(&found), now)
	}
	p.jobs.Settle(func(name string, verdicts []flightrecorder.Verdict, _ time.Time) {
		for i := range verdicts {
			p.logs.wait(&verdicts[i], jobs[name], now)
		}
	})
}

// read reads a dump to be compared, and returns what its log record has of it, nothing if it cannot
// be compared.
func (p *poller) read(found *dump.Dump) []any {
	if found.Rank < 0 {
		return nil
	}
	var read *flightrecorder.Dump
	data, err := p.dumps.Read(found)
	if err == nil {
		read, err = flightrecorder.Read(data, found.Rank)
	}
	if err == nil && !p.jobs.Add(found.Job, read, found.Written) {
		err = errors.New("too many others are")
	}
	if err != nil {
		p.settings.Logger.Warn("A Flight Recorder dump is not compared", zap.String("path", found.Path), zap.Error(err))
		return nil
	}
	return read.Record()
}

// jobRank is a rank of the dumps of one name.
type jobRank struct {
	job  string
	rank int64
}

// runsOfRanks returns the runs of dumps by the processes of this host with their ranks, as their
// launchers' variables say, that had begun before. Dumps of one name are of one run, or of none that
// is known.
func (p *poller) runsOfRanks(dumps []dump.Dump) map[jobRank]string {
	runs, ofJob := make(map[jobRank]string), make(map[string]map[string]bool)
	for _, pid := range p.processes.IDs(maxProcesses) {
		of, alive := p.processes.Describe(pid)
		for i := range dumps {
			found := &dumps[i]
			if alive && of.RankGlobal.Known && of.RankGlobal.Value == found.Rank && of.Start.Before(found.Written) {
				runs[jobRank{found.Job, found.Rank}] = of.RunID
				shared.Entry(ofJob, found.Job, func() map[string]bool { return make(map[string]bool) })[of.RunID] = true
			}
		}
	}
	maps.DeleteFunc(runs, func(of jobRank, _ string) bool { return len(ofJob[of.job]) > 1 })
	return runs
}

// runOf returns the run of the only job that has answered of late if it has the rank
// on this host, else "".
func (p *poller) runOf(rank int64, addresses map[netip.Addr]bool, now time.Time) string {
	of := func(at time.Time) bool { return now.Sub(at) <= forgetAfter*p.cfg.CollectionInterval }
	if p.last == nil || !of(p.answered) || of(p.other) || !p.last.Has(rank, addresses) {
		return ""
	}
	return p.last.RunID
}

// ask asks NCCL once and reports the job that answers.
func (p *poller) ask(ctx context.Context, now time.Time) {
	answer, err := p.client.Status(ctx)
	if ctx.Err() != nil {
		return
	}
	p.count(err)
	if err != nil {
		return
	}
	before := p.last
	p.last = job.Of(answer, job.Host{Addresses: p.addresses(), Describe: p.processes.Describe})
	if before != nil && before.RunID != p.last.RunID {
		p.other = p.answered
	}
	p.answered = now
	if !p.last.Leads {
		if now.Sub(p.led) > forgetAfter*p.cfg.CollectionInterval {
			p.skip = othersEvery - 1
		}
		return
	}
	p.led = now
	p.dropCommunicators(answer.Dropped)
	reports := make([]communicator.Report, len(answer.Communicators))
	for i := range answer.Communicators {
		reports[i] = p.tracker.Observe(&answer.Communicators[i], now)
	}
	p.tracker.Forget(now.Add(-forgetAfter * p.cfg.CollectionInterval))
	p.logs.changes(reports, p.last, now)
	p.logs.send(ctx) // before a hang is concluded from the metrics: its evidence has what was logged
	p.metrics.send(ctx, p.withSeries(reports), p.last, now)
}

// withSeries returns the communicators that have series: those with ranks that are not
// OK, then the largest. The reports are in the order of their size.
func (p *poller) withSeries(reports []communicator.Report) []communicator.Report {
	if len(reports) <= p.cfg.maxCommunicators {
		return reports
	}
	p.dropCommunicators(len(reports) - p.cfg.maxCommunicators)
	first := slices.Clone(reports)
	slices.SortStableFunc(first, func(a, b communicator.Report) int {
		return min(len(b.Affected), 1) - min(len(a.Affected), 1)
	})
	return first[:p.cfg.maxCommunicators]
}

// count counts a query, and logs its outcome if it is another than that before. On a
// host without a job, queries are refused, which is not worth a line.
func (p *poller) count(err error) {
	outcome := answered
	if err != nil {
		outcome = string(ras.ReasonOf(err))
	}
	p.telemetry.ReceiverNcclQueries.Add(context.Background(), 1,
		metric.WithAttributes(p.self, attribute.String("outcome", outcome)))
	if outcome == p.outcome {
		return
	}
	p.outcome = outcome
	switch logger := p.settings.Logger; outcome {
	case answered:
		logger.Info("NCCL answers", zap.String("endpoint", p.cfg.Endpoint))
	case string(ras.Refused):
		logger.Debug("No process with NCCL listens", zap.String("endpoint", p.cfg.Endpoint))
	default:
		logger.Warn("NCCL was asked without success; the receiver asks again", zap.String("endpoint", p.cfg.Endpoint), zap.Error(err))
	}
}

func (p *poller) dropCommunicators(n int) {
	if n > 0 {
		p.telemetry.ReceiverNcclDroppedCommunicators.Add(context.Background(), int64(n), metric.WithAttributes(p.self))
	}
}

// ownAddresses returns the addresses of this host's interfaces.
func ownAddresses() map[netip.Addr]bool {
	own := make(map[netip.Addr]bool)
	all, _ := net.InterfaceAddrs() // without them, no process is one of this host
	for _, address := range all {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own[prefix.Addr().Unmap()] = true
		}
	}
	return own
}
