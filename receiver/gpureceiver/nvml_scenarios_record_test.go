//go:build cgo && linux

package gpureceiver

import (
	"context"
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
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	gpurecorder "github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/cmd/recorder"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"recording": {control: "samples 100\nfans 2", run: runRecording},
	})
}

// What a driver tells, recorded and played again, makes the same metrics.
func runRecording(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	everything := loadConfig(t, filepath.Join("testdata", "replay", "everything_h100", "config.yaml"))
	cfg.MetricsBuilderConfig = everything.MetricsBuilderConfig
	cfg.slowInterval = 0
	path := filepath.Join(t.TempDir(), "recording.yaml")
	live := newRig(t, cfg)
	out, err := gpurecorder.New(gpurecorder.Options{
		Path: path, Duration: time.Hour, Program: "a test", Logger: zap.NewNop(), Now: func() time.Time { return live.clock },
	})
	require.NoError(t, err)
	live.scraper.monitor.source = recorded{live.scraper.monitor.source, out}
	live.scraper.monitor.Listen(func(event device.Event) { out.Event(&event) })
	told := live.listen(t)
	expected := []string{devicePoints(live.scrape(t))}
	d.set(t, "samples 200", "fans 2", "event 1", "xid 94", "xid_gpu 1")
	<-told
	expected = append(expected, devicePoints(live.after(t, 10*time.Second)))
	d.set(t, "samples 300", "fans 2", "lost 0")
	expected = append(expected, devicePoints(live.after(t, 10*time.Second)))
	require.NoError(t, live.scraper.Shutdown(t.Context()))
	require.NoError(t, out.Shutdown(t.Context()))

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, private := range []string{"gpu-node-7", "4242", "4243", "serial"} {
		assert.NotContains(t, strings.ToLower(string(raw)), private)
	}
	cfg.Source, cfg.Replay.Path = SourceReplay, path
	replayed := newRig(t, cfg)
	assert.Equal(t, expected[0], devicePoints(replayed.scrape(t)))
	assert.Equal(t, expected[1], devicePoints(replayed.after(t, 10*time.Second)))
	assert.Equal(t, expected[2], devicePoints(replayed.after(t, 10*time.Second)))
	// There was something to compare.
	assert.Contains(t, expected[0], "hw.fan.speed_ratio")
	assert.Contains(t, expected[1], "nvidia.gpu.xid.errors map[nvidia.gpu.index:1 nvidia.gpu.xid.code:94] 1 0")
	assert.Contains(t, expected[2], "hw.status map[hw.state:failed hw.type:gpu nvidia.gpu.index:0] 1 0")
}

// recorded is a source whose snapshots are recorded.
type recorded struct {
	device.Source
	out *gpurecorder.Recorder
}

func (r recorded) Snapshot(ctx context.Context) device.Snapshot {
	snapshot := r.Source.Snapshot(ctx)
	r.out.Add(&snapshot)
	return snapshot
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
