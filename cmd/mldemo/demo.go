package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/term"
)

// demo runs the two programs and prints the collector's page.
type demo struct {
	collector, mlgen, config string
	// directory contains the logs and, by default, the reproductions.
	directory, reproductions string
	// duration is how long the demo runs, 0 until Ctrl-C.
	duration  time.Duration
	once      bool
	endpoints []endpoint
	out       *os.File
	// url is the page's, last the text that it showed last.
	url, last string
}

// run runs the demo until ctx is done, its duration is over, or something
// fails. When it returns, both children have ended. hurry shortens their time
// to end.
func (d *demo) run(ctx, hurry context.Context) (err error) {
	lock, err := lockFolder(d.directory)
	if err != nil {
		return err
	}
	// A program that is started at the moment has the file, too: closing it is not enough.
	defer func() { err = errors.Join(err, unlockFolder(lock)) }()
	training, err := createTrainingLog(d.directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, training.Close()) }()
	if d.endpoints, err = reserve(d.endpoints, d.say); err != nil {
		return err
	}
	d.url = "http://" + d.address("view-endpoint") + "/"

	// Printed last, when both children have ended: on a terminal, a part of the
	// text may not have been visible.
	defer func() {
		d.say("Logs are left in %s, reproductions of failures in %s\n", visible(d.directory), visible(d.reproductions))
		if d.last != "" {
			d.say("\n%s\n\n%s", d.url, d.last)
		}
	}()
	collector, err := d.start("the collector", d.collector, "collector.log", 20*time.Second, "--config", d.config)
	if err != nil {
		return err
	}
	defer collector.stop(hurry, d.say)
	if err := d.waitForHealth(ctx, collector); err != nil || ctx.Err() != nil {
		return err
	}
	// Each system uses its client's protocol. Something goes wrong every few seconds of the
	// first minute, is mended after 90 s, and comes again later.
	mlgen, err := d.start("mlgen", d.mlgen, "mlgen.log", 10*time.Second, "--scenario", "all", "--protocol", "auto",
		"--incident", "all", "--incident-rate", "20", "--incident-steps", "1800", "--metrics-interval", "1s",
		"--endpoint", d.address("otlp-grpc-endpoint"), "--http-endpoint", "http://"+d.address("otlp-http-endpoint"))
	if err != nil {
		return err
	}
	// Deferred calls run in reverse order: mlgen stops first, so that the
	// collector can send everything that it received.
	defer mlgen.stop(hurry, d.say)
	// And a training that only prints.
	printing, stop := context.WithCancel(ctx)
	printed := make(chan error, 1)
	go func() { printed <- printTraining(printing, training) }()
	defer func() {
		stop()
		err = errors.Join(err, <-printed)
	}()
	ctx, done := context.WithTimeout(ctx, cmp.Or(d.duration, math.MaxInt64))
	defer done()
	return d.watch(ctx, collector, mlgen)
}

// watch prints the page, as soon as it has a run, until ctx is done or a child
// ends. With --once it waits until each part of the page has data.
func (d *demo) watch(ctx context.Context, collector, mlgen *child) error {
	var problem error
	err := until(ctx, 2*time.Second, func() (bool, error) {
		width, height := d.size()
		var text string
		var s state
		text, s, problem = readPage(ctx, d.url, width, height > 0)
		if problem == nil && len(s.Runs) > 0 {
			d.last = text
		}
		if d.once || d.last == "" || ctx.Err() != nil {
			return d.once && problem == nil && s.complete(), nil
		}
		return false, d.show(width, height, problem)
	}, collector, mlgen)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if d.last != "" {
		return nil
	}
	return errors.Join(fmt.Errorf("%s showed no run within %s", d.url, d.duration), problem)
}

// until tries at once and then after each interval, until that is done or fails,
// ctx is done, or a child has ended. A child's end and a deadline are errors.
func until(ctx context.Context, interval time.Duration, try func() (done bool, err error), children ...*child) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, c := range children {
			if c.ended() {
				return c.because("ended with " + c.cmd.ProcessState.String())
			}
		}
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return nil
}

// show prints the page's URL, and the text that it showed last: on a terminal in
// place of the previous one, otherwise below it.
func (d *demo) show(width, height int, problem error) error {
	text := fmt.Sprintf("%s\nCtrl-C ends the demo. Send your own OTLP to %s (gRPC) or http://%s\n", d.url,
		d.address("otlp-grpc-endpoint"), d.address("otlp-http-endpoint"))
	if problem != nil {
		text += "The page does not answer; this is older: " + visible(problem.Error()) + "\n"
	}
	if text += "\n" + d.last + "\n"; height > 0 {
		text = frame(text, width, height)
	}
	_, err := d.out.WriteString(text)
	return err
}

// size returns the width of the output, and its height if it is a terminal.
func (d *demo) size() (width, height int) {
	width, height, err := term.GetSize(int(d.out.Fd()))
	if err != nil || os.Getenv("TERM") == "dumb" {
		return 120, 0
	}
	return width, height
}

// start starts a program that logs into the demo's folder.
func (d *demo) start(name, path, log string, grace time.Duration, args ...string) (*child, error) {
	log = filepath.Join(d.directory, log)
	d.say("Starting %s (log: %s)\n", name, visible(log))
	env := append(os.Environ(), "OTELCOL_ML_REPRO_DIR="+d.reproductions, "TRAINING_LOGS=["+strconv.Quote(filepath.Join(d.directory, trainingLog))+"]")
	for _, e := range d.endpoints {
		env = append(env, e.environment()...)
	}
	return startChild(name, path, args, env, log, grace)
}

// waitForHealth waits until the collector is healthy, or ctx is done.
func (d *demo) waitForHealth(ctx context.Context, collector *child) error {
	waiting, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	health := "http://" + d.address("health-endpoint") + "/"
	err := until(waiting, 100*time.Millisecond, func() (bool, error) {
		_, err := get(waiting, health, "*/*")
		return err == nil, nil
	}, collector)
	if errors.Is(err, context.DeadlineExceeded) {
		return collector.because("did not become healthy within a minute (" + health + ")")
	}
	return err
}

// say prints a message. It ignores errors, because the children must be stopped
// even if nobody reads the output.
func (d *demo) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(d.out, format, arguments...)
}

// address returns the address behind a flag, to connect to.
func (d *demo) address(flag string) string {
	i := slices.IndexFunc(d.endpoints, func(e endpoint) bool { return e.flag == flag })
	return dialable(d.endpoints[i].address)
}

// unlockFolder ends what lockFolder began.
func unlockFolder(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}

// lockFolder makes a folder that only one demo writes to until its process ends.
func lockFolder(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder for logs and reproductions (--dir): %w", err)
	}
	path := filepath.Join(folder, ".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The folder is the user's choice.
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w: if another demo runs with this folder, choose another one with --dir", path, err), file.Close())
	}
	return file, nil
}
