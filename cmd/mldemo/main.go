package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// sameSignal is the time within which a repeated signal counts as the first
// one: a Ctrl-C may arrive twice, from the terminal and from a program that
// forwards it.
const sameSignal = time.Second

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	os.Exit(runDemo(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// settings are the flags and environment variables.
type settings struct {
	collector, mlgen, config string
	// directory contains the logs and, by default, the reproductions.
	directory     string
	reproductions string
	duration      time.Duration
	once          bool
	endpoints     []endpoint
}

func runDemo(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	chosen, err := parseFlags(args, lookup, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "mldemo:", err) // the exit code reports it too
		return exitUsage
	}

	// If the reader of stdout disappears, the next write fails instead of the
	// process being killed, which would leave its children running.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, brokenPipe()...)

	// The first signal requests a clean end, a later one a fast end. There is
	// no signal.Stop, because the process ends with this function: a signal at
	// the very end must not change the exit code.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals()...)
	run, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	hurry, kill := context.WithCancel(context.Background())
	defer kill()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		var first time.Time
		for {
			select {
			case <-signals:
				interrupt()
				if first.IsZero() {
					first = time.Now()
				} else if time.Since(first) >= sameSignal {
					kill()
				}
			case <-finished:
				return
			}
		}
	}()

	d := newDemo(chosen, stdout)
	if err := d.run(run, hurry); err != nil {
		_, _ = fmt.Fprintln(stderr, "mldemo:", err) // the exit code reports it too
		return exitError
	}
	return exitOK
}

// parseFlags reads the command line and, for the addresses, the environment.
func parseFlags(args []string, lookup func(string) (string, bool), stderr io.Writer) (settings, error) {
	s := settings{endpoints: demoEndpoints()}
	for i := range s.endpoints {
		s.endpoints[i].fromEnvironment(lookup)
	}
	reproductions, _ := lookup("OTELCOL_ML_REPRO_DIR")
	flags := flag.NewFlagSet("mldemo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.collector, "collector", "bin/otelcol-ml", "the collector's `binary`")
	flags.StringVar(&s.mlgen, "mlgen", "bin/mlgen", "the workload generator's `binary`")
	flags.StringVar(&s.config, "config", "distribution/config/demo.yaml", "the collector's configuration `file`")
	flags.StringVar(&s.directory, "dir", "demo-output", "the `folder` for logs and reproductions, created if it does not exist")
	flags.StringVar(&s.reproductions, "reproductions", reproductions,
		"the `folder` for reproductions (OTELCOL_ML_REPRO_DIR), by default \"reproductions\" in --dir")
	flags.DurationVar(&s.duration, "duration", 0, "how long the demo runs, such as 30s; 0 runs until Ctrl-C")
	flags.BoolVar(&s.once, "once", false,
		"print one screen as soon as every part of it has data, at the latest after --duration (here 0 means 60s), and exit")
	for i := range s.endpoints {
		e := &s.endpoints[i]
		flags.Func(e.flag, fmt.Sprintf("the `address` for %s (%s), by default %s or, if that port is taken, a free one", e.use, e.variables(), e.address),
			func(value string) error {
				e.address, e.explicit = value, true
				return nil
			})
	}
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q; see mldemo -help", flags.Arg(0))
	}
	if s.once && s.duration == 0 {
		s.duration = time.Minute
	}
	return s, s.validate()
}

// validate checks the settings before anything is started, and makes displayed
// paths absolute.
func (s *settings) validate() error {
	var errs []error
	for _, program := range []struct{ flag, path string }{{"collector", s.collector}, {"mlgen", s.mlgen}} {
		if _, err := exec.LookPath(program.path); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w; \"make demo\" builds it", program.flag, err))
		}
	}
	if file, err := os.Open(s.config); err != nil {
		errs = append(errs, fmt.Errorf("--config: %w", err))
	} else {
		errs = append(errs, file.Close())
	}
	if s.duration < 0 {
		errs = append(errs, fmt.Errorf("--duration is %s, must be 0 (until Ctrl-C) or more", s.duration))
	}
	if strings.TrimSpace(s.directory) == "" {
		errs = append(errs, errors.New("--dir is empty, must be the path of a folder"))
	}
	if s.reproductions == "" {
		s.reproductions = filepath.Join(s.directory, "reproductions")
	}
	for _, e := range s.endpoints {
		errs = append(errs, validateEndpoint(e))
	}
	// Users run the displayed command in another terminal, perhaps in another
	// folder.
	absolute, err := filepath.Abs(s.reproductions)
	s.reproductions = absolute
	return errors.Join(append(errs, err)...)
}
