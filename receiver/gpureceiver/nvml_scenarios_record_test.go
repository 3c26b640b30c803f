//go:build cgo && linux

package gpureceiver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadatatest"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"recording":             {control: "samples 100\nfans 2", run: runRecording},
		"recording that exists": {run: runRecordingThatExists},
	})
}

// What a driver tells, recorded and played again, makes the same metrics.
func runRecording(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	everything := loadConfig(t, filepath.Join("testdata", "replay", "everything_h100", "config.yaml"))
	cfg.MetricsBuilderConfig = everything.MetricsBuilderConfig
	cfg.slowInterval = 0
	cfg.Record.Path = filepath.Join(t.TempDir(), "recording.yaml")
	live := newRig(t, cfg)
	told := live.listen(t)
	expected := []string{devicePoints(live.scrape(t))}
	d.set(t, "samples 200", "fans 2", "event 1", "xid 94", "xid_gpu 1")
	<-told
	expected = append(expected, devicePoints(live.after(t, 10*time.Second)))
	d.set(t, "samples 300", "fans 2", "lost 0")
	expected = append(expected, devicePoints(live.after(t, 10*time.Second)))
	require.NoError(t, live.scraper.Shutdown(t.Context()))

	raw, err := os.ReadFile(cfg.Record.Path)
	require.NoError(t, err)
	for _, private := range []string{"gpu-node-7", "4242", "4243", "serial"} {
		assert.NotContains(t, strings.ToLower(string(raw)), private)
	}
	cfg.Source, cfg.Replay.Path, cfg.Record.Path = SourceReplay, cfg.Record.Path, ""
	replayed := newRig(t, cfg)
	assert.Equal(t, expected[0], devicePoints(replayed.scrape(t)))
	assert.Equal(t, expected[1], devicePoints(replayed.after(t, 10*time.Second)))
	assert.Equal(t, expected[2], devicePoints(replayed.after(t, 10*time.Second)))
	// There was something to compare.
	assert.Contains(t, expected[0], "hw.fan.speed_ratio")
	assert.Contains(t, expected[1], "nvidia.gpu.xid.errors map[nvidia.gpu.index:1 nvidia.gpu.xid.code:94] 1 0")
	assert.Contains(t, expected[2], "hw.status map[hw.state:failed hw.type:gpu nvidia.gpu.index:0] 1 0")
}

// devicePoints writes the points of all GPUs without what a recording has not:
// a line each, in order.
func devicePoints(metrics pmetric.Metrics) string {
	var lines []string
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if strings.HasPrefix(metric.Name(), "nvidia.gpu.workload.") || strings.HasPrefix(metric.Name(), "nvidia.gpu.process.") {
					continue
				}
				for _, point := range numberPoints(metric).All() {
					attributes := point.Attributes().AsRaw()
					for _, other := range []string{"hw.id", "host.name", "nvidia.gpu.source"} {
						delete(attributes, other)
					}
					lines = append(lines, fmt.Sprint(metric.Name(), " ", attributes, " ", point.IntValue(), " ", point.DoubleValue()))
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A restart finds the file of the last time, and reads the GPUs all the same.
func runRecordingThatExists(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Record.Path = filepath.Join(t.TempDir(), "recording.yaml")
	first := newRig(t, cfg)
	first.scrape(t)
	require.NoError(t, first.scraper.Shutdown(t.Context()))
	before, err := os.ReadFile(cfg.Record.Path)
	require.NoError(t, err)

	second := newRig(t, cfg)
	assert.Len(t, pointsOf(second.scrape(t), gpu0, "hw.power"), 1)
	assert.Contains(t, second.logged()[0], "nothing is recorded")
	require.NoError(t, second.scraper.Shutdown(t.Context()))
	after, err := os.ReadFile(cfg.Record.Path)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	rec, err := recording.Load(cfg.Record.Path)
	require.NoError(t, err)
	assert.Contains(t, rec.Origin, "recorded by the gpu receiver of")

	cfg.Record.Path = filepath.Join(t.TempDir(), "none", "recording.yaml")
	third := newScraper(cfg, metadatatest.NewSettings(second.telemetry), &monitors{})
	require.ErrorContains(t, third.Start(t.Context(), componenttest.NewNopHost()), `"record::path" is "`+cfg.Record.Path+`"; it must be a file that can be created`)
	require.NoError(t, third.Shutdown(t.Context()))
}
