// Command mlgen imitates the telemetry of five machine-learning systems, of a
// fleet and of incidents, and sends it by OTLP. Everything that it sends is simulated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// The exit statuses.
const (
	exitOK = iota
	// exitRefused means that a server did not accept everything, or that the
	// sent log could not be written.
	exitRefused
	// exitUsage means that a flag was wrong; nothing was sent.
	exitUsage
)

// grace is the time that requests may take after an interruption.
const grace = 10 * time.Second

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal requests a clean end; a second one kills.
	context.AfterFunc(stop, cancel)
	os.Exit(run(stop, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole command. It returns when the work is done or stop is
// canceled.
func run(stop context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		say(stderr, "mlgen: %v\nRun mlgen --help for all flags.\n", err)
		return exitUsage
	}
	refused, err := generate(stop, o, stderr)
	if err != nil {
		say(stderr, "mlgen: %v\n", err)
		return exitRefused
	}
	if refused > 0 {
		return exitRefused
	}
	return exitOK
}

// generate runs the scenarios and returns how many items were not accepted.
func generate(stop context.Context, o options, stderr io.Writer) (refused int64, err error) {
	var log *sentlog.Writer
	if o.sent != "" {
		file, err := os.OpenFile(o.sent, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, fmt.Errorf("--sent: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		log = sentlog.NewWriter(file)
	}
	results := newResults(o.names, log)
	drivers, closeSenders, err := newDrivers(o, results)
	if err != nil {
		return 0, err
	}
	defer closeSenders()

	start := o.start
	if start.IsZero() {
		start = time.Now()
	}
	results.header(sentlog.Header{
		Version: sentlog.Version, Seed: o.seed, Scenarios: o.names, StartUnixNano: start.UnixNano(), Rate: o.rate,
	})
	say(stderr, "mlgen: sending simulated telemetry, seed %d\n", o.seed)
	hide := showProgress(o, results, stderr)
	drive(stop, drivers)
	hide()
	refused = results.report(stderr, o.names)
	return refused, results.close(time.Now(), stop.Err() != nil)
}

func newDrivers(o options, results *results) ([]*driver, func(), error) {
	var senders []send.Sender
	closeAll := func() {
		for _, s := range senders {
			_ = s.Close()
		}
	}
	var drivers []*driver
	for _, name := range o.names {
		s, err := o.create(name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		// One connection for each scenario, as with separate programs.
		sender, err := newSender(o, name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		senders = append(senders, sender)
		d := &driver{name: name, scenario: s, sender: sender, results: results, rate: o.rateOf(name), steps: o.steps(name), start: o.start}
		// On the simulated clock only the number of steps counts: a slow
		// machine must not change what a seed sends.
		if o.duration > 0 && o.start.IsZero() {
			d.deadline = time.Now().Add(o.duration)
		}
		drivers = append(drivers, d)
	}
	return drivers, closeAll, nil
}

func newSender(o options, name string) (send.Sender, error) {
	if o.transport(name) == scenario.GRPC {
		return send.NewGRPC(o.endpoint, send.DefaultRetry())
	}
	tracesURL := ""
	if name == "fx" {
		tracesURL = o.fxEndpoint
	}
	return send.NewHTTP(o.httpEndpoint, tracesURL, send.DefaultRetry())
}

// drive runs all scenarios concurrently. Once stop is canceled, requests in
// progress may take up to grace.
func drive(stop context.Context, drivers []*driver) {
	sending, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	release := context.AfterFunc(stop, func() {
		timer := time.AfterFunc(grace, func() { cut(errors.New("interrupted")) })
		context.AfterFunc(sending, func() { timer.Stop() })
	})
	defer release()

	var all sync.WaitGroup
	for _, d := range drivers {
		all.Go(func() { d.run(stop, sending) })
	}
	all.Wait()
}

// showProgress shows the progress line on a terminal, or if it is requested,
// and returns a function that removes it.
func showProgress(o options, results *results, stderr io.Writer) func() {
	file, ok := stderr.(*os.File)
	if !o.progress && (!ok || !term.IsTerminal(int(file.Fd()))) {
		return func() {}
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { results.show(stderr, o.names, done) })
	return func() {
		close(done)
		shown.Wait()
	}
}
