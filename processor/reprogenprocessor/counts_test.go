package reprogenprocessor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// limited is a failure that the rate limit leaves without an artifact: all of
// it went to another one of its service.
func limited(cfg *Config, n int) (batches []ptrace.Traces) {
	cfg.ArtifactsPerMinute, cfg.limits.burst = 1, 2
	batches = append(batches, failedCall{errorType: "FirstError", trace: 200}.traces())
	for i := range n {
		batches = append(batches, failedCall{errorType: "LimitedError", trace: byte(i + 1)}.traces())
	}
	return batches
}

// TestRestartKeepsCountsWithoutAnArtifact: how often a failure was seen before
// it had a folder is not forgotten when the collector stops.
func TestRestartKeepsCountsWithoutAnArtifact(t *testing.T) {
	cfg := testConfig(t)
	produce(t, cfg, limited(cfg, 5)...)
	require.Len(t, artifacts(t, cfg), 1)
	produce(t, cfg) // a start in between changes nothing
	cfg.ArtifactsPerMinute, cfg.limits.burst = 60_000, 60_000
	produce(t, cfg, failedCall{errorType: "LimitedError", trace: 100}.traces())
	require.Len(t, artifacts(t, cfg), 2)
	counts := map[string][2]int64{}
	for _, g := range groups(t, cfg) {
		counts[g.Type] = [2]int64{g.Count, g.Suppressed}
	}
	assert.Equal(t, map[string][2]int64{"FirstError": {1, 0}, "LimitedError": {6, 5}}, counts)

	produce(t, cfg, failedCall{errorType: "LimitedError", trace: 101}.traces())
	for _, g := range groups(t, cfg) {
		counts[g.Type] = [2]int64{g.Count, g.Suppressed}
	}
	assert.Equal(t, [2]int64{7, 5}, counts["LimitedError"], "it counts once, now that it has a folder")
}

// TestDamagedCountsAreNoObstacle: whatever is in the place of the counts, the
// collector starts and counts anew.
func TestDamagedCountsAreNoObstacle(t *testing.T) {
	name := func(cfg *Config) string { return filepath.Join(cfg.Directory, ".counts.json") }
	for what, damage := range map[string]func(t *testing.T, cfg *Config){
		"no JSON":         func(t *testing.T, cfg *Config) { write(t, name(cfg), "{damaged") },
		"a newer version": func(t *testing.T, cfg *Config) { newer(t, name(cfg)) },
		"impossible values": func(t *testing.T, cfg *Config) {
			counted := text(t, name(cfg))
			require.Contains(t, counted, `"count":3`)
			write(t, name(cfg), strings.ReplaceAll(counted, `"count":3`, `"count":-5`))
		},
		"names of others": func(t *testing.T, cfg *Config) {
			write(t, name(cfg), `{"groups":[{"fingerprint":"../../etc","count":5}]}`)
		},
		"too large": func(t *testing.T, cfg *Config) { write(t, name(cfg), string(make([]byte, 2<<20))) },
		"a link elsewhere": func(t *testing.T, cfg *Config) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			write(t, elsewhere, `{"groups":[]}`)
			require.NoError(t, os.Remove(name(cfg)))
			require.NoError(t, os.Symlink(elsewhere, name(cfg)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := testConfig(t)
			produce(t, cfg, limited(cfg, 3)...)
			require.FileExists(t, name(cfg))
			damage(t, cfg)
			cfg.ArtifactsPerMinute, cfg.limits.burst = 60_000, 60_000
			produce(t, cfg, failedCall{errorType: "LimitedError", trace: 100}.traces())
			for _, g := range groups(t, cfg) {
				assert.EqualValues(t, 1, g.Count)
			}
			assert.Len(t, artifacts(t, cfg), 2)
			info, err := os.Lstat(name(cfg))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode(), "it was written anew")
			if what == "no JSON" || what == "a newer version" {
				assert.FileExists(t, name(cfg)+".backup", "nothing is overwritten")
			}
		})
	}
}

// TestCountsAreBounded: a flood of unlike failures, with long names, makes no
// large file.
func TestCountsAreBounded(t *testing.T) {
	cfg := testConfig(t)
	batches := limited(cfg, 1)
	for i := range 3000 {
		c := failedCall{errorType: fmt.Sprintf("E%dError", i), trace: byte(i), span: byte(i >> 8)}
		c.service = fmt.Sprintf("%04000d", i%7)
		batches = append(batches, c.traces())
	}
	produce(t, cfg, batches...)
	info, err := os.Stat(filepath.Join(cfg.Directory, ".counts.json"))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(1<<20))
	assert.Greater(t, info.Size(), int64(1<<18))
	produce(t, cfg, failedCall{errorType: "E2999Error", trace: 250}.traces())
}
