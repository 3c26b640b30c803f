//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
)

// profileTime is how long each variant is profiled.
const profileTime = 30 * time.Second

// profileOf writes a CPU profile of the variants of some signals to a file.
func profileOf(ctx context.Context, o options, signals []string) error {
	var all []*profile.Profile
	for _, signal := range signals {
		running, err := start(ctx, o, signal)
		if err != nil {
			return err
		}
		for i, v := range running.variants {
			of, err := v.profile(ctx, o, running, uint64(i)) // #nosec G115 -- a seed
			if err != nil {
				running.stop()
				return fmt.Errorf("variant %s: %w", v.name, err)
			}
			all = append(all, of)
		}
		running.stop()
	}
	merged, err := profile.Merge(all)
	if err != nil {
		return err
	}
	for _, m := range merged.Mapping {
		m.File, m.BuildID = "", "" // the paths and the builds of this machine
	}
	to, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	return errors.Join(merged.Write(to), to.Close())
}

// profile sends requests while the collector takes a profile of itself.
func (v *variant) profile(ctx context.Context, o options, of *running, seed uint64) (*profile.Profile, error) {
	type result struct {
		profile *profile.Profile
		err     error
	}
	taken := make(chan result, 1)
	go func() {
		p, err := v.fetchProfile(ctx)
		taken <- result{p, err}
	}()
	for {
		batch, err := encode(of.load, seed, o.requests)
		if err != nil {
			return nil, err
		}
		if _, err := v.turn(ctx, batch, of.sink); err != nil {
			return nil, err
		}
		select {
		case r := <-taken:
			return r.profile, r.err
		default:
		}
		seed += 1 << 32
	}
}

func (v *variant) fetchProfile(ctx context.Context) (*profile.Profile, error) {
	raw, err := v.fetch(ctx, "profile?seconds="+strconv.Itoa(int(profileTime.Seconds())))
	if err != nil {
		return nil, err
	}
	return profile.ParseData(raw)
}

// fetch returns what the collector answers to a request for one of its profiles.
func (v *variant) fetch(ctx context.Context, which string) ([]byte, error) {
	url := "http://" + v.profiles + "/debug/pprof/" + which
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
