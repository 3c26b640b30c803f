// Command dashboards writes the dashboards of the compose stack into
// docker/grafana/dashboards, one JSON file each. `make generate` runs it; the files are committed.
//
// A dashboard is a function in its own file that lists its panels. panels.go
// and table.go have the kinds of panels, queries.go shared PromQL, and links.go
// the links.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

//go:generate go run .

// stack is the folder of the compose stack, relative to this one, and written that of
// the files.
const (
	stack   = "../../docker"
	written = stack + "/grafana/dashboards"
)

func main() {
	if err := write(written); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// all returns the dashboards by file name.
func all() map[string]*board {
	return map[string]*board{
		"runs":      runsBoard(),
		"training":  trainingBoard(),
		"inference": inferenceBoard(),
		"gpus":      gpusBoard(),
		"errors":    errorsBoard(),
		"collector": collectorBoard(),
	}
}

func write(folder string) error {
	for name, b := range all() {
		text, err := b.encode()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), text, 0o644); err != nil { //nolint:gosec // Grafana reads them as another user
			return err
		}
	}
	return nil
}

// encode makes the JSON of a dashboard and refuses one that the schema does.
func (b *board) encode() ([]byte, error) {
	built, err := b.build()
	if err != nil {
		return nil, err
	}
	if err := built.Validate(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(built); err != nil {
		return nil, err
	}
	// Otherwise the options of panels and the queries are not looked at.
	plugins.RegisterDefaultPlugins()
	var again dashboard.Dashboard
	if err := again.UnmarshalJSONStrict(text.Bytes()); err != nil {
		return nil, errors.Join(errors.New("what was written cannot be read"), err)
	}
	return text.Bytes(), nil
}
