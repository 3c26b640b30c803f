// Mldemo is the program of "make demo". It starts the collector and the
// workload generator mlgen, prints the collector's page as text every two
// seconds, and stops both at the end. It runs on Unix systems.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(runDemo(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)) }

// runDemo returns the exit code: 0, 1 after an error, 2 for wrong usage.
func runDemo(args []string, lookup func(string) (string, bool), stdout *os.File, stderr io.Writer) int {
	d, err := parseFlags(args, lookup, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "mldemo:", err) // the exit code reports it too
		return 2
	}
	// If the reader of stdout disappears, the next write fails instead of the
	// process being killed, which would leave its children running.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// The first signal requests a clean end, a later one a fast end.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	run, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	hurry, kill := context.WithCancel(context.Background())
	defer kill()
	go func() { // until the process ends
		<-signals
		interrupt()
		// A Ctrl-C may arrive twice, from the terminal and from a program that
		// forwards it.
		for first := time.Now(); time.Since(first) < time.Second; {
			<-signals
		}
		kill()
	}()
	d.out = stdout
	if err := d.run(run, hurry); err != nil {
		_, _ = fmt.Fprintln(stderr, "mldemo:", err) // the exit code reports it too
		return 1
	}
	return 0
}

// parseFlags reads the command line and, for the addresses, the environment.
func parseFlags(args []string, lookup func(string) (string, bool), stderr io.Writer) (*demo, error) {
	d := &demo{endpoints: demoEndpoints()}
	reproductions, _ := lookup("OTELCOL_ML_REPRO_DIR")
	flags := flag.NewFlagSet("mldemo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&d.collector, "collector", "bin/otelcol-ml-agent", "the collector's `binary`")
	flags.StringVar(&d.mlgen, "mlgen", "bin/mlgen", "the workload generator's `binary`")
	flags.StringVar(&d.config, "config", "distribution/config/demo.yaml", "the collector's configuration `file`")
	flags.StringVar(&d.directory, "dir", "demo-output", "the `folder` for logs and reproductions, created if it does not exist")
	flags.StringVar(&d.reproductions, "reproductions", reproductions,
		"the `folder` for reproductions (OTELCOL_ML_REPRO_DIR), by default \"reproductions\" in --dir")
	flags.DurationVar(&d.duration, "duration", 0, "how long the demo runs, such as 30s; 0 runs until Ctrl-C")
	flags.BoolVar(&d.once, "once", false,
		"print the page once, as soon as every part of it has data, at the latest after --duration (here 0 means 60s), and exit")
	for i := range d.endpoints {
		e := &d.endpoints[i]
		e.fromEnvironment(lookup)
		flags.Func(e.flag, fmt.Sprintf("the `address` for %s (%s), by default %s or, if that port is taken, a free one", e.use, strings.Join(e.env, " and "), e.address),
			func(value string) error {
				e.address, e.explicit = value, true
				return nil
			})
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; see mldemo -help", flags.Arg(0))
	}
	if d.once && d.duration == 0 {
		d.duration = time.Minute
	}
	// Users run the commands in another terminal, perhaps in another folder.
	var err error
	d.reproductions, err = filepath.Abs(cmp.Or(d.reproductions, filepath.Join(d.directory, "reproductions")))
	return d, err
}
