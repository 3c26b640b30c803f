package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// refreshInterval is the time between two screens.
	refreshInterval = 2 * time.Second
	// healthInterval is the time between two health checks of a starting
	// collector.
	healthInterval = 100 * time.Millisecond
)

// demo runs the two programs and draws the screen.
type demo struct {
	settings settings
	out      io.Writer
	view     *view

	// Durations, which tests shorten.
	refresh        time.Duration
	startTimeout   time.Duration
	mlgenGrace     time.Duration
	collectorGrace time.Duration

	notes   []string
	started time.Time
}

func newDemo(s settings, out io.Writer) *demo {
	return &demo{
		settings:       s,
		out:            out,
		view:           newView(out),
		refresh:        refreshInterval,
		startTimeout:   time.Minute,
		mlgenGrace:     10 * time.Second,
		collectorGrace: 20 * time.Second,
	}
}

// run runs the demo until ctx is done, its duration is over, or something
// fails. When it returns, both children have ended. hurry shortens their time
// to end.
func (d *demo) run(ctx, hurry context.Context) (err error) {
	s := &d.settings
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return fmt.Errorf("create the folder for logs and reproductions (--dir): %w", err)
	}
	lock, err := lockFolder(filepath.Join(s.directory, ".lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	var moved []string
	if s.endpoints, moved, err = reserve(s.endpoints); err != nil {
		return err
	}
	for _, note := range moved {
		d.say("note: %s\n", printable(note))
	}
	if len(moved) > 0 {
		d.notes = []string{"other programs use some of the demo's default ports; the addresses below are in use"}
	}

	env := d.environment()
	d.started = time.Now()
	// Printed last, when both children have ended.
	defer d.sayWhatIsLeft()
	collectorLog := filepath.Join(s.directory, "collector.log")
	d.say("Starting the collector (log: %s)\n", printable(collectorLog))
	collector, err := startChild("the collector", s.collector, []string{"--config", s.config}, env, collectorLog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(hurry, collector, d.collectorGrace)) }()
	if err := d.waitForHealth(ctx, collector); err != nil || ctx.Err() != nil {
		return err
	}

	mlgenLog := filepath.Join(s.directory, "mlgen.log")
	d.say("Starting the workload generator (log: %s)\n", printable(mlgenLog))
	mlgen, err := startChild("mlgen", s.mlgen, []string{
		// Each system uses its client's protocol.
		"--scenario", "all", "--protocol", "auto",
		"--endpoint", dialable(d.address("otlp-grpc-endpoint")),
		"--http-endpoint", "http://" + dialable(d.address("otlp-http-endpoint")),
	}, env, mlgenLog)
	if err != nil {
		return err
	}
	// Deferred calls run in reverse order: mlgen stops first, so that the
	// collector can send everything that it received.
	defer func() { err = errors.Join(err, d.stop(hurry, mlgen, d.mlgenGrace)) }()

	if s.duration > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, s.duration)
		defer done()
	}
	return d.watch(ctx, collector, mlgen)
}

// watch draws screens until ctx is done or a child ends.
func (d *demo) watch(ctx context.Context, collector, mlgen *child) error {
	scrapes := newScraper(dialable(d.address("prometheus-endpoint")), time.Now)
	seen := &history{}
	ticker := time.NewTicker(d.refresh)
	defer ticker.Stop()
	for {
		select {
		case <-collector.done:
			return d.diedEarly(collector)
		case <-mlgen.done:
			return d.diedEarly(mlgen)
		case <-ctx.Done():
			if d.settings.once {
				return d.drawIncomplete(d.page(seen, nil))
			}
			return nil
		case <-ticker.C:
		}
		scraped, problem := scrapes.scrape(ctx)
		if ctx.Err() != nil {
			continue
		}
		if problem == nil {
			seen.add(scraped)
		}
		page := d.page(seen, problem)
		if d.settings.once && !complete(page) {
			continue
		}
		if err := d.view.draw(page); err != nil || d.settings.once {
			return err
		}
	}
}

// drawIncomplete draws the available data when the time for a complete screen
// is over. It returns an error if there is no run, because then the demo does
// not work.
func (d *demo) drawIncomplete(p page) error {
	if err := d.view.draw(p); err != nil {
		return err
	}
	if len(p.snapshot.runs) == 0 {
		return fmt.Errorf("the collector reported no run within %s", d.settings.duration)
	}
	return nil
}

// page returns the content of a screen. A problem with the last scrape becomes
// a note, and the numbers of the last good one stay.
func (d *demo) page(seen *history, problem error) page {
	newest, unreadable := newestFailure(d.settings.reproductions)
	notes := slices.Clone(d.notes)
	if problem != nil {
		notes = append(notes, fmt.Sprintf("showing older metrics, because the last scrape failed: %v", problem))
	}
	if unreadable != nil {
		notes = append(notes, fmt.Sprintf("cannot read a reproduction: %v", unreadable))
	}
	return page{
		snapshot: takeSnapshot(seen),
		failure:  newest,
		notes:    notes,
		now:      time.Now(),
		started:  d.started,
		grpc:     dialable(d.address("otlp-grpc-endpoint")),
		http:     dialable(d.address("otlp-http-endpoint")),
		metrics:  dialable(d.address("prometheus-endpoint")),
		logs: []string{
			filepath.Join(d.settings.directory, "collector.log"),
			filepath.Join(d.settings.directory, "mlgen.log"),
		},
	}
}

// complete reports whether every part of the screen has data.
func complete(p page) bool {
	if p.failure == nil || len(p.snapshot.gpus) == 0 {
		return false
	}
	return slices.ContainsFunc(p.snapshot.runs, func(r run) bool { return r.stepRate.known }) &&
		slices.ContainsFunc(p.snapshot.tokens, func(t tokens) bool { return t.rate.known })
}

// waitForHealth waits until the collector is healthy.
func (d *demo) waitForHealth(ctx context.Context, collector *child) error {
	url := "http://" + dialable(d.address("health-endpoint")) + "/"
	client := plainClient(time.Second)
	deadline := time.NewTimer(d.startTimeout)
	defer deadline.Stop()
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		if healthy(ctx, client, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-collector.done:
			return d.diedEarly(collector)
		case <-deadline.C:
			return errors.Join(
				fmt.Errorf("the collector did not become healthy within %s (%s); its log is %s", d.startTimeout, url, collector.logPath),
				tailError(collector))
		case <-ticker.C:
		}
	}
}

func healthy(ctx context.Context, client *http.Client, url string) bool {
	//nolint:gosec // The address is the user's own, as for any client.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request) //nolint:gosec // as above
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// diedEarly returns an error for a child that ended while it was needed.
func (d *demo) diedEarly(c *child) error {
	return errors.Join(c.died(), tailError(c))
}

// tailError returns an error with the end of a child's log.
func tailError(c *child) error {
	lines, err := c.logTail()
	if err != nil {
		return fmt.Errorf("the log cannot be read: %w", err)
	}
	if len(lines) == 0 {
		return errors.New("the log is empty")
	}
	return errors.New("the end of the log:\n  " + strings.Join(lines, "\n  "))
}

// stop stops a child and prints that. If the child has to be killed, it prints
// that too, but returns no error: the user asked for the end.
func (d *demo) stop(hurry context.Context, c *child, grace time.Duration) error {
	if c.ended() {
		return nil
	}
	d.say("Stopping %s … ", c.name)
	if err := c.stop(hurry, grace); err != nil {
		d.say("%s\n", printable(err.Error()))
		if !c.ended() {
			return err
		}
		return nil
	}
	d.say("done\n")
	return nil
}

// say prints a message. It ignores errors, because the children must be stopped
// even if nobody reads the output.
func (d *demo) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(d.out, format, arguments...)
}

// sayWhatIsLeft prints the folders that remain.
func (d *demo) sayWhatIsLeft() {
	d.say("Logs are left in %s, reproductions of failures in %s\n",
		shellQuote(d.settings.directory), shellQuote(d.settings.reproductions))
}

// address returns the address behind a flag.
func (d *demo) address(flag string) string {
	for _, e := range d.settings.endpoints {
		if e.flag == flag {
			return e.address
		}
	}
	panic("no endpoint has the flag " + flag)
}

// environment returns the children's environment: the demo's own with the
// chosen addresses and folders.
func (d *demo) environment() []string {
	chosen := map[string]string{"OTELCOL_ML_REPRO_DIR": d.settings.reproductions}
	for _, e := range d.settings.endpoints {
		maps.Copy(chosen, e.environment())
	}
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		// exec uses the last of several settings of a variable.
		env = append(env, name+"="+chosen[name])
	}
	return env
}
