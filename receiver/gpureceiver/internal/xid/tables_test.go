package xid

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the table in Go against the file that people write.
func TestTablesAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_nvlink.go", "xid", "nvlink.yaml",
		golden.Variable{Name: "nvlinkUnits", Comment: "are the units of NVLink 5.", Value: golden.YAML[[]nvlinkUnit](t, "nvlink.yaml")})
}
