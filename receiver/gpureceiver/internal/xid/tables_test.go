package xid

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// readMeanings reads the table of the codes, a line each: the code, its severity, its effect
// and its meaning. Codes that NVIDIA's catalogue calls unused or reserved are not in it.
func readMeanings(t *testing.T) map[uint64]Meaning {
	t.Helper()
	severities := map[string]Severity{"notice": Notice, "program": Program, "device": Device, "gone": Gone}
	effects := map[string]Effect{"-": None, "predicts": Predicts, "degrades": Degrades, "fails": Fails}
	text, err := os.ReadFile("meanings.txt")
	require.NoError(t, err)
	table := make(map[uint64]Meaning)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		code, err := strconv.ParseUint(fields[0], 10, 64)
		require.NoError(t, err)
		table[code] = Meaning{Text: strings.Join(fields[3:], " "), Severity: severities[fields[1]], Effect: effects[fields[2]]}
	}
	return table
}

// TestTablesAreGenerated holds the tables in Go against the files that people write.
func TestTablesAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_nvlink.go", "xid", "nvlink.yaml",
		golden.Variable{Name: "nvlinkUnits", Comment: "are the units of NVLink 5.", Value: golden.YAML[[]nvlinkUnit](t, "nvlink.yaml")})
	golden.Variables(t, "generated_meanings.go", "xid", "meanings.txt",
		golden.Variable{Name: "meanings", Comment: "are those of the codes.", Value: readMeanings(t)})
}
