package smoke

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The folder in which every shipped and shown queue is.
const queueFolder = "/var/lib/otelcol-ml/queue"

// What starts a collector that has a queue on disk looks at the queue's files
// first: the compose stack and the unit for systemd.
func TestQueuesAreCheckedBeforeStart(t *testing.T) {
	for name, config := range shownConfigurations(t) {
		extensions, _ := config["extensions"].(map[string]any)
		for id, settings := range extensions {
			// How far files were read is no queue, and is recreated.
			if fields, ok := settings.(map[string]any); ok && strings.HasPrefix(id, "file_storage") && fields["recreate"] != true {
				assert.Contains(t, fields["directory"], queueFolder, "%s: %s", name, id)
			}
		}
	}

	service, err := stack(t).GetService("otelcol-ml")
	require.NoError(t, err)
	assert.Equal(t, []string{"/queuecheck", queueFolder, "/otelcol-ml"}, []string(service.Entrypoint))

	unit := readUnit(t, harness.Path("distribution", "package", "otelcol-ml.service"))
	assert.Equal(t, []string{"-/usr/libexec/otelcol-ml/queuecheck " + queueFolder}, unit["Service"]["ExecStartPre"])
	assert.Contains(t, strings.Fields(unit["Service"]["StateDirectory"][0]), strings.TrimPrefix(queueFolder, "/var/lib/"))
}

// readUnit returns the values of a unit's keys by section.
func readUnit(t *testing.T, file string) map[string]map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	unit := map[string]map[string][]string{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
			unit[section] = map[string][]string{}
		default:
			key, value, found := strings.Cut(line, "=")
			require.True(t, found, line)
			unit[section][key] = append(unit[section][key], value)
		}
	}
	return unit
}
