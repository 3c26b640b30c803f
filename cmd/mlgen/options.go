package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/incident"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
)

const (
	defaultGRPC = "localhost:4317"
	defaultHTTP = "http://localhost:4318"

	maxRate  = 10_000
	maxRanks = 1024
	// minLasts is longer than a restart takes.
	minLasts = 100
)

// fleetName is the name of the fleet in the log and the output.
const fleetName = "fleet"

// options are the validated flags.
type options struct {
	// names are those of the scenarios and incidents, and of the fleet.
	names []string
	// lasts is how many steps an incident lasts, 0 until the end.
	lasts int
	fleet fleet.Size
	// rate is that of scenarios and the fleet, incidentRate that of incidents.
	rate, incidentRate float64
	duration           time.Duration
	count              int64
	seed               int64
	start              time.Time
	ranks              int
	jobID              int64
	jobName            string
	metricsInterval    time.Duration
	protocol           string
	endpoint           string
	httpEndpoint       string
	fxEndpoint         string
	sent               string
	progress           bool
}

// parse reads the command line. It returns flag.ErrHelp for --help; any other
// error names the flag, its value and the accepted values.
func parse(args []string, output io.Writer) (options, error) {
	var o options
	var names, incidents, size, seed, start string
	flags := flag.NewFlagSet("mlgen", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&names, "scenario", "all", "comma-separated `systems` to imitate: "+strings.Join(scenario.Names(), ", ")+", or all")
	flags.StringVar(&incidents, "incident", "", "comma-separated `incidents` to play: "+strings.Join(incident.Names(), ", ")+", or all; without --scenario, nothing else is sent")
	flags.Float64Var(&o.incidentRate, "incident-rate", 0, "`steps` per second of incidents; 0 means --rate")
	flags.IntVar(&o.lasts, "incident-steps", 0, "how many `steps` an incident lasts until it is mended; later it comes again. 0 means until the end")
	flags.StringVar(&size, "fleet", "", "`size` of a healthy fleet, such as runs=500,ranks=8,gpus=512; without --scenario, nothing else is sent")
	flags.Float64Var(&o.rate, "rate", 1, "activity `steps` per second and scenario: a training step, an operation, a call, a batch, a round")
	flags.DurationVar(&o.duration, "duration", 0, "sending `time`; 0 means until interrupted")
	flags.Int64Var(&o.count, "steps", 0, "`number` of steps of each scenario, instead of --duration, however long they take; 0 means no limit")
	flags.StringVar(&seed, "seed", "", "`number` that determines ids, values and order; by default random and printed")
	flags.StringVar(&start, "start", "", "RFC 3339 `time` of the first step on a simulated clock (default: the wall clock)")
	flags.IntVar(&o.ranks, "ranks", 2, "`number` of TorchTel processes")
	flags.Int64Var(&o.jobID, "job-id", 0, "TorchTel's job `id`; under torchrun it sends 0")
	flags.StringVar(&o.jobName, "job-name", "local", "TorchTel's job `name`")
	flags.DurationVar(&o.metricsInterval, "metrics-interval", 5*time.Second, "`time` between metric exports of a process; the clients' default is 60s")
	flags.StringVar(&o.protocol, "protocol", "auto", "`transport`: grpc, http, or auto for the transport of each system")
	flags.StringVar(&o.endpoint, "endpoint", "", "gRPC `host:port`, or with --protocol http the base URL (default "+defaultGRPC+" or "+defaultHTTP+")")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "", "base `URL` for OTLP/HTTP (default "+defaultHTTP+")")
	flags.StringVar(&o.fxEndpoint, "fx-endpoint", "", "`URL` that the fx scenario posts its spans to exactly as given, by HTTP (default: /v1/traces of the HTTP endpoint)")
	flags.StringVar(&o.sent, "sent", "", "`file` for the log of acknowledged items, as JSON lines; an existing file is replaced")
	flags.BoolVar(&o.progress, "progress", false, "show progress even if standard error is not a terminal")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		say(output, usageHead)
		flags.SetOutput(output)
		flags.PrintDefaults()
		return o, err
	}
	if err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q, mlgen has flags only", flags.Arg(0))
	}
	var problems []error
	if incidents+size == "" || isSet(flags, "scenario") {
		o.names, err = list("scenario", names, scenario.Names())
		problems = append(problems, err)
	}
	if incidents != "" {
		chosen, err := list("incident", incidents, incident.Names())
		o.names = append(o.names, chosen...)
		problems = append(problems, err)
	}
	if size != "" {
		o.fleet, err = fleet.ParseSize(size)
		o.names = append(o.names, fleetName)
		problems = append(problems, flagError("--fleet", err))
	}
	o.seed, err = seedNumber(seed)
	problems = append(problems, err)
	if start != "" {
		o.start, err = time.Parse(time.RFC3339Nano, start)
		if err != nil {
			problems = append(problems, fmt.Errorf("--start is %q, want an RFC 3339 time such as 2026-01-31T12:00:00Z", start))
		} else if year := o.start.Year(); year < 1971 || year > 2200 {
			problems = append(problems, fmt.Errorf("--start is %q, want a year between 1971 and 2200", start))
		}
	}
	problems = append(problems, o.check()...)
	return o, errors.Join(problems...)
}

const usageHead = `mlgen imitates the telemetry of five machine-learning systems, of a fleet and of
incidents, and sends it by OTLP. All of it is simulated.

Usage: mlgen [flags]

`

// list reads a comma-separated list of the names, or all.
func list(flagName, text string, names []string) ([]string, error) {
	if text == "all" {
		return names, nil
	}
	var out []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--%s is %q, want all or a comma-separated list of %s", flagName, text, strings.Join(names, ", "))
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// isSet reports whether the command line has a flag.
func isSet(flags *flag.FlagSet, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func seedNumber(text string) (int64, error) {
	if text == "" {
		return rand.Int64N(1 << 48), nil //nolint:gosec // A seed is no secret.
	}
	seed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--seed is %q, want a whole number", text)
	}
	return seed, nil
}

// check validates what a flag's type does not, and fills in the endpoints.
func (o *options) check() []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !(o.rate > 0 && o.rate <= maxRate) || math.IsNaN(o.rate) {
		bad("--rate is %v, want more than 0 and at most %d", o.rate, maxRate)
	}
	if o.incidentRate = cmp.Or(o.incidentRate, o.rate); !(o.incidentRate > 0 && o.incidentRate <= maxRate) {
		bad("--incident-rate is %v, want more than 0 and at most %d, or 0 for --rate", o.incidentRate, maxRate)
	}
	if o.duration < 0 {
		bad("--duration is %v, want 0 (until interrupted) or more", o.duration)
	}
	if o.count < 0 {
		bad("--steps is %d, want 0 (no limit) or more", o.count)
	}
	if o.count > 0 && o.duration > 0 {
		bad("--steps is %d and --duration is %v, want one of the two", o.count, o.duration)
	}
	if o.ranks < 1 || o.ranks > maxRanks {
		bad("--ranks is %d, want 1 to %d", o.ranks, maxRanks)
	}
	if o.lasts < 0 || o.lasts > 0 && o.lasts < minLasts {
		bad("--incident-steps is %d, want 0 (until the end) or at least %d", o.lasts, minLasts)
	}
	if o.metricsInterval <= 0 {
		bad("--metrics-interval is %v, want more than 0", o.metricsInterval)
	}
	return append(problems, o.checkEndpoints()...)
}

// checkEndpoints decides which transports are used. With auto, an endpoint that
// is given alone serves every scenario.
func (o *options) checkEndpoints() []error {
	var problems []error
	switch o.protocol {
	case "auto":
		switch {
		case o.endpoint != "" && o.httpEndpoint == "":
			o.protocol = "grpc"
		case o.endpoint == "" && o.httpEndpoint != "":
			o.protocol = "http"
		}
	case "http":
		if o.httpEndpoint == "" {
			o.httpEndpoint = o.endpoint
		}
	case "grpc":
	default:
		return []error{fmt.Errorf("--protocol is %q, want grpc, http or auto", o.protocol)}
	}
	if o.endpoint == "" {
		o.endpoint = defaultGRPC
	}
	if o.httpEndpoint == "" {
		o.httpEndpoint = defaultHTTP
	}
	if o.protocol != "http" {
		problems = append(problems, flagError("--endpoint", closeAfter(send.NewGRPC(o.endpoint, send.Retry{}))))
	}
	if o.protocol != "grpc" {
		name := "--http-endpoint"
		if o.protocol == "http" && o.httpEndpoint == o.endpoint {
			name = "--endpoint"
		}
		problems = append(problems, flagError(name, closeAfter(send.NewHTTP(o.httpEndpoint, "", send.Retry{}))))
	}
	if o.fxEndpoint != "" {
		problems = append(problems, flagError("--fx-endpoint", closeAfter(send.NewHTTP(defaultHTTP, o.fxEndpoint, send.Retry{}))))
	}
	return problems
}

// closeAfter makes a check of a constructor.
func closeAfter(sender send.Sender, err error) error {
	if err != nil {
		return err
	}
	return sender.Close()
}

func flagError(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// steps is how many steps a scenario takes; 0 means no end.
func (o *options) steps(name string) int64 {
	if o.duration == 0 {
		return o.count
	}
	return max(1, int64(math.Round(o.duration.Seconds()*o.rateOf(name))))
}

// transport is the protocol that a scenario is sent by.
func (o *options) transport(name string) scenario.Protocol {
	if name == "fx" && o.fxEndpoint != "" {
		return scenario.HTTP
	}
	switch o.protocol {
	case "grpc":
		return scenario.GRPC
	case "http":
		return scenario.HTTP
	}
	if kind, ok := scenario.Find(name); ok {
		return kind.Protocol
	}
	// As one collector sends to another.
	return scenario.GRPC
}

// create returns the scenario, the incident or the fleet of a name.
func (o *options) create(name string) (scenario.Scenario, error) {
	switch {
	case name == fleetName:
		return fleet.New(o.settings(name), o.fleet), nil
	case slices.Contains(incident.Names(), name):
		return incident.New(name, o.settings(name), o.lasts)
	default:
		return scenario.New(name, o.settings(name))
	}
}

// rateOf returns the steps per second of a name.
func (o *options) rateOf(name string) float64 {
	if slices.Contains(incident.Names(), name) {
		return o.incidentRate
	}
	return o.rate
}

func (o *options) settings(name string) scenario.Settings {
	return scenario.Settings{
		Seed: o.seed, Rate: o.rateOf(name), Ranks: o.ranks, JobID: o.jobID, JobName: o.jobName,
		MetricsInterval: o.metricsInterval,
	}
}
