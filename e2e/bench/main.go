//go:build linux

// Command bench measures what the components cost a whole collector: the built
// binary runs once with each file of a folder of variants, all get the same spans,
// metric points or log records, one after the other, and the processor time that
// the kernel charges each of them is compared.
//
// The result is a ratio: items per second of processor time with a variant,
// divided by that of variant plain, or of another binary with it. Nothing is asserted;
// see docs/evidence/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// reference is the variant that all others are compared with.
const reference = "plain"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	collector, variants string
	only                string
	rounds, requests    int
	// stock is a binary to compare with, and environment that of the others.
	stock, environment string
	// before is a binary with which each variant runs too.
	before string
	// series is how many a scrape is measured with; 0 measures none.
	series int
	// rising measures loads that rise.
	rising bool
	// cores measures one core and all of them.
	cores bool
	// pprof reports whether the collectors have their extension for profiles.
	pprof bool
	// profile is the file that a profile is written to. Nothing is measured then.
	profile string
}

// check returns an error if options are given that exclude each other.
func (o *options) check() error {
	modes := map[string]bool{"profile": o.profile != "", "series": o.series > 0, "rising": o.rising, "cores": o.cores}
	var given []string
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if modes[name] {
			given = append(given, "-"+name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("%s exclude each other", strings.Join(given, " and "))
	}
	if len(given) == 1 && (o.before != "" || o.stock != "") {
		return fmt.Errorf("%s measures one binary: -before and -stock must be empty", given[0])
	}
	return nil
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.collector, "collector", "../bin/otelcol-ml", "the collector's binary")
	flags.StringVar(&o.variants, "variants", "bench/variants", "the folder with a folder of variants for each signal")
	flags.BoolVar(&o.cores, "cores", false, "measure how much more the components of whole pass on with all cores than with one, and nothing else")
	name := flags.String("signal", "traces", "what is sent: traces, points or logs")
	flags.StringVar(&o.only, "only", "", "names of variants, separated by commas; plain is there too, but not in a -profile")
	flags.IntVar(&o.rounds, "rounds", 12, "how often each variant gets its turn, half of them in the opposite order")
	flags.IntVar(&o.requests, "requests", 200, "requests of 512 spans, points or records in a turn")
	flags.StringVar(&o.stock, "stock", "", "another collector's binary: with plain and without -environment it is the reference")
	flags.StringVar(&o.before, "before", "", "an earlier binary: each variant runs with it too, to show what a change gives")
	flags.StringVar(&o.environment, "environment", "", "variables of all collectors but -stock, separated by commas, as in GOGC=200")
	flags.IntVar(&o.series, "series", 0, "measure scrapes of so many series, and nothing else")
	flags.BoolVar(&o.rising, "rising", false, "measure whole while rate, runs and live traces rise, and nothing else")
	flags.StringVar(&o.profile, "profile", "", "write a CPU profile to this file, of whole and agent under load of all signals, or of the variants -only of -signal, and measure nothing")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if o.rounds < 1 || o.requests < 1 {
		return errors.New("-rounds and -requests must be at least 1")
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.profile != "" {
		o.pprof = true
		if o.only != "" {
			return profileOf(ctx, o, []string{*name})
		}
		return profileOf(ctx, o, slices.Sorted(maps.Keys(loads)))
	}
	if o.cores {
		return onCores(ctx, o, out)
	}
	if o.rising {
		return rises(ctx, o, out)
	}
	if o.series > 0 {
		return scrapes(ctx, o, out)
	}
	running, err := start(ctx, o, *name)
	if err != nil {
		return err
	}
	defer running.stop()
	if err := measure(ctx, o, running); err != nil {
		return err
	}
	return report(out, running.variants)
}

// running is the variants of a signal.
type running struct {
	load      load
	variants  []*variant
	sink      *sink
	directory string
}

// start starts the variants of a signal, the reference first.
func start(ctx context.Context, o options, name string) (r *running, err error) {
	r = &running{}
	var known bool
	if r.load, known = loads[name]; !known {
		return nil, fmt.Errorf("-signal is %q; it must be traces, points or logs", name)
	}
	o.variants = filepath.Join(o.variants, name)
	names, err := variantNames(o)
	if err != nil {
		return nil, err
	}
	if o.profile != "" {
		profiled := []string{"whole", "agent"}
		if o.only != "" {
			profiled = strings.Split(o.only, ",")
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(profiled, name) })
	}
	if r.directory, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	if r.sink, err = newSink(r.load); err != nil {
		return nil, err
	}
	if o.stock != "" {
		names = slices.Insert(names, 0, stock)
	}
	for _, name := range names {
		v, err := startVariant(ctx, o, r.load, name, r.sink.address, filepath.Join(r.directory, name))
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("variant %s: %w", name, err)
		}
		r.variants = append(r.variants, v)
	}
	return r, nil
}

func (r *running) stop() {
	for _, v := range r.variants {
		_ = v.stop()
	}
	r.sink.stop()
	_ = os.RemoveAll(r.directory)
}

// variantNames lists the variants, the reference first.
func variantNames(o options) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(o.variants, "*.yaml"))
	if err != nil {
		return nil, err
	}
	names := []string{reference}
	wanted := strings.Split(o.only, ",")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name != reference && (o.only == "" || slices.Contains(wanted, name)) {
			names = append(names, name)
		}
	}
	for _, name := range wanted {
		if o.only != "" && !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only has %q; there are the variants %q in %s", name, names, o.variants)
		}
	}
	if o.before != "" {
		for _, name := range slices.Clone(names) {
			names = append(names, name+before)
		}
	}
	return names, nil
}

// measure gives the variants their turns: forwards, backwards, forwards, so
// that what changes with time, such as the machine's clock, meets all of them
// alike. The first turn of each warms it up and does not count.
func measure(ctx context.Context, o options, r *running) error {
	order := slices.Clone(r.variants)
	for round := -1; round < o.rounds; round++ {
		requests, err := encode(r.load, uint64(round+1), o.requests)
		if err != nil {
			return err
		}
		for _, v := range order {
			items, err := v.turn(ctx, requests, r.sink)
			if err != nil {
				return fmt.Errorf("variant %s: %w", v.name, err)
			}
			if round < 0 {
				v.spent = nil
			} else if items < o.requests*itemsOfRequest {
				return fmt.Errorf("variant %s: %d of %d came through", v.name, items, o.requests*itemsOfRequest)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// report prints the ratios to the reference, turn by turn: the median and the
// range.
func report(out io.Writer, variants []*variant) error {
	base := variants[0]
	lines := []string{"| variant | ratio to " + base.name + ", median | range | µs of processor time each | attributes added to each | resident MiB |", "|---|---|---|---|---|---|"}
	for _, v := range variants {
		var ratios, costs []float64
		for turn, spent := range v.spent {
			ratios = append(ratios, base.spent[turn].Seconds()/spent.Seconds())
			costs = append(costs, spent.Seconds()*1e6/float64(v.itemsOfTurn))
		}
		slices.Sort(ratios)
		slices.Sort(costs)
		resident, err := v.resident()
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("| %s | %.3f | %.3f to %.3f | %.2f | %.1f | %.0f |", v.name,
			ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], costs[len(costs)/2],
			float64(v.attributes-base.attributes)/float64(v.itemsOfTurn), float64(resident)/(1<<20)))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// settleTime is how long a variant may take for what it has accepted.
const settleTime = time.Minute
