package mlmetricsconnector

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// hostReading has one point of a metric of a host, as the gpu receiver sends it.
func hostReading(host, metric, key, id, kind string, value float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(metric)
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetDoubleValue(value)
	point.Attributes().PutStr("host.name", host)
	point.Attributes().PutStr(key, id)
	if kind != "" {
		point.Attributes().PutStr("error.type", kind)
	}
	return md
}

// fault says how a value of a host changes: before is its value, grow what is added at each
// reading from a time of the test on.
type fault struct {
	host, metric, id, kind string
	before, grow           float64
	always                 bool
}

func (f *fault) send(t *testing.T, w *world, readings int, grows bool) {
	key := "hw.id"
	if strings.HasPrefix(f.metric, "host.") {
		key = "system.filesystem.mountpoint"
	}
	if grows || f.always {
		f.before += f.grow
	}
	for range readings {
		w.metrics(t, hostReading(f.host, f.metric, key, f.id, f.kind, f.before))
	}
}

// TestFaultsBeforeAHang: errors that begin shortly before a hang, and a file system that does
// not answer, are its evidence. Others are not.
func TestFaultsBeforeAHang(t *testing.T) {
	for name, tt := range map[string]struct {
		fault
		evidence string
	}{
		"a port":                 {fault{"n1", "infiniband.port.errors", "mlx5_3/1", "symbol_error", 40, 100, false}, "port mlx5_3/1 of n1 counts errors since"},
		"a link that went down":  {fault{"n1", "infiniband.port.errors", "mlx5_3/1", "link_downed", 2, 0.04, false}, "port mlx5_3/1 of n1 counts errors since"},
		"PCIe":                   {fault{"n0", "pcie.errors", "0000:19:00.0", "nonfatal", 0, 1, false}, "PCIe device 0000:19:00.0 of n0 counts errors since"},
		"NVLink":                 {fault{"n1", "nvidia.gpu.nvlink.errors", "GPU-3", "crc_flit", 0, 50, false}, "NVLink of GPU GPU-3 of n1 counts errors since"},
		"a file system":          {fault{"n0", "host.mount.silence", "/mnt/home", "", 0, 10, false}, "the file system /mnt/home of n0 has not answered since"},
		"a few that it corrects": {fault{"n1", "infiniband.port.errors", "mlx5_3/1", "symbol_error", 40, 0.1, false}, ""},
		"as always":              {fault{"n1", "infiniband.port.errors", "mlx5_3/1", "symbol_error", 40, 100, true}, ""},
		"of another host":        {fault{"n9", "infiniband.port.errors", "mlx5_3/1", "link_downed", 0, 1, false}, ""},
		"of another run's GPU":   {fault{"n1", "nvidia.gpu.nvlink.errors", "GPU-9", "ecc", 0, 1, false}, ""},
		"of no number":           {fault{"n1", "infiniband.port.errors", "mlx5_3/1", "link_downed", 0, math.NaN(), false}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			for range 100 { // steps of ten seconds
				tt.send(t, w, 2, false)
				w.step(t, 1)
			}
			w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 120 }
			for range 25 {
				tt.send(t, w, 1, true)
				w.wait(t, 15*time.Second)
			}
			evidence := texts(w.only(t, "looks_hung"), "ml.problem.evidence")
			if tt.evidence == "" {
				assert.NotContains(t, evidence, " errors since ")
				assert.NotContains(t, evidence, "answered")
			} else {
				assert.Contains(t, evidence, tt.evidence)
			}
		})
	}
}

// TestFaultsBeforeARunIsSlow: also its evidence has the kinds of errors and their numbers.
func TestFaultsBeforeARunIsSlow(t *testing.T) {
	w := newWorld(t, 2)
	symbols := fault{host: "n0", metric: "infiniband.port.errors", id: "mlx5_0/1", kind: "symbol_error", grow: 10}
	timeouts := fault{host: "n0", metric: "infiniband.port.errors", id: "mlx5_0/1", kind: "local_ack_timeout_err", grow: 1}
	for n := range 260 {
		symbols.send(t, w, 1, n > 200)
		timeouts.send(t, w, 1, n > 200)
		if n > 200 {
			w.rest = 19 * time.Second
		}
		w.step(t, 1)
	}
	assert.Regexp(t, `: (\d+) local_ack_timeout_err, \d+0 symbol_error$`, texts(w.only(t, "slow"), "ml.problem.evidence"))
}

// TestFaultsAreBounded: however many hosts and faults are sent, few are remembered.
func TestFaultsAreBounded(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for _, value := range []float64{1, 100} {
		for n := range 33_000 {
			r.metrics(t, hostReading(fmt.Sprint("n", n%100), "infiniband.port.errors", "hw.id", strconv.Itoa(n), "symbol_error", value))
		}
	}
	count := func(at time.Time) (faults int) {
		facts, _ := r.connector.Shared.seen.Settle(nil, at)
		for _, of := range facts.Faults {
			faults += len(of)
		}
		return faults
	}
	assert.Equal(t, 32_768, count(r.clock))
	assert.Zero(t, count(r.clock.Add(time.Hour+time.Second)))
	for _, seconds := range []float64{7, 17} {
		for n := range 9000 {
			r.metrics(t, hostReading(fmt.Sprint("h", n), "host.mount.silence", "system.filesystem.mountpoint", "/", "", seconds))
		}
	}
	assert.Equal(t, 8192, count(r.clock))
}

// TestFaultsThatSayNothing: a file system that answers again, and what a port has counted before
// its first reading.
func TestFaultsThatSayNothing(t *testing.T) {
	w := newWorld(t, 2)
	silence := func(seconds float64) {
		w.metrics(t, hostReading("n0", "host.mount.silence", "system.filesystem.mountpoint", "/mnt", "", seconds))
	}
	w.step(t, 100)
	w.metrics(t, hostReading("n0", "infiniband.port.errors", "hw.id", "mlx5_0/1", "link_downed", 4000))
	for _, seconds := range []float64{5, 15, 0} {
		silence(seconds)
	}
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 120 }
	w.wait(t, 6*time.Minute)
	evidence := texts(w.only(t, "looks_hung"), "ml.problem.evidence")
	assert.NotContains(t, evidence, "answered")
	assert.NotContains(t, evidence, "link_downed")
}
