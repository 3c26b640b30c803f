package model

import (
	"cmp"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestGapsAreGenerated holds the words in Go against the file that people write.
func TestGapsAreGenerated(t *testing.T) {
	type file struct {
		Gaps, Drivers map[string]api.Missing
		Sources       map[string]string
		Notices       []api.Missing
	}
	of := golden.YAML[file](t, "gaps.yaml")
	for key, gap := range of.Gaps {
		gap.Key, gap.Kind = key, cmp.Or(gap.Kind, key)
		of.Gaps[key] = gap
	}
	golden.Variables(t, "generated_gaps.go", "model", "gaps.yaml",
		golden.Variable{Name: "gaps", Comment: "are what is missing, by key.", Value: of.Gaps},
		golden.Variable{Name: "drivers", Comment: "have why there are no GPUs, and what changes it, by the state of the driver.", Value: of.Drivers},
		golden.Variable{Name: "sources", Comment: "have what a source of attribution needs.", Value: of.Sources},
		golden.Variable{Name: "notices", Comment: "are what collectors say of themselves, by ml.notice.", Value: of.Notices})
}
