package text_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
)

var update = flag.Bool("update", false, "write the golden files")

func written(t *testing.T, s *model.State, o text.Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, text.Write(&out, s, o))
	return out.String()
}

func TestGolden(t *testing.T) {
	empty := &model.State{Version: model.SchemaVersion, Time: now}
	for name, state := range map[string]*model.State{"incident": incident(), "empty": empty} {
		for _, width := range []int{80, 120, 200} {
			file := filepath.Join("testdata", fmt.Sprintf("%s-%d.txt", name, width))
			got := written(t, state, text.Options{Width: width})
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o750))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got, file)
		}
	}
}

// The first command is one that reproduces its failure as it stands.
func TestFirstCommandReproduces(t *testing.T) {
	state := &model.State{Time: now, Failures: []model.Failure{
		{Class: "known", Command: "known"},
		{Class: "asks", Command: "asks URL", Replays: true, Fill: []string{"URL"}},
		{Class: "acts", Command: "acts", Replays: true, Requires: []string{"--allow-side-effects"}},
		{Class: "without"},
		{Class: "older", Command: "older", Replays: true, Requires: []string{"--allow-module a:b"}},
		{Class: "oldest", Command: "oldest", Replays: true},
	}}
	out := written(t, state, text.Options{})
	assert.Regexp(t, `(?s)\$ older\n.*\$ oldest\n.*\$ acts\n.*\$ asks URL\n.*replace URL by your own\n.*cannot be replayed.*\$ known\n`, out)
}
