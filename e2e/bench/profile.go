//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// profileTime is how long each variant is profiled.
const profileTime = 30 * time.Second

// profile writes a CPU profile of all variants under load to a file.
func profile(ctx context.Context, o options, variants []*variant, sink *sink, directory string) error {
	arguments := []string{"tool", "pprof", "-proto", "-output", o.profile}
	for i, v := range variants {
		file := filepath.Join(directory, v.name+".pprof")
		if err := v.profile(ctx, o, file, uint64(i), sink); err != nil { // #nosec G115 -- a seed
			return fmt.Errorf("variant %s: %w", v.name, err)
		}
		arguments = append(arguments, file)
	}
	merge := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // files of its own
	merge.Stderr = os.Stderr
	return merge.Run()
}

// profile sends requests while the collector takes a profile of itself.
func (v *variant) profile(ctx context.Context, o options, file string, seed uint64, sink *sink) error {
	taken := make(chan error, 1)
	go func() { taken <- v.fetchProfile(ctx, file) }()
	for {
		batch, err := encode(o.load, seed, o.requests)
		if err != nil {
			return err
		}
		if _, err := v.turn(ctx, batch, sink); err != nil {
			return err
		}
		select {
		case err := <-taken:
			return err
		default:
		}
		seed += 1 << 32
	}
}

func (v *variant) fetchProfile(ctx context.Context, file string) error {
	url := "http://" + v.profiles + "/debug/pprof/profile?seconds=" + strconv.Itoa(int(profileTime.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	to, err := os.Create(file) //nolint:gosec // in a folder of its own
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, answer.Body); err != nil {
		return err
	}
	return to.Close()
}
