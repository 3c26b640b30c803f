package fleet

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	// gib is 2^30 bytes.
	gib = 1 << 30
	// memoryLimit and powerLimit are those of an H100 with 80 GB.
	memoryLimit   = 85_520_809_984
	powerLimit    = 700.0
	idlePower     = 72.0
	reserved      = 577_765_376
	productName   = "NVIDIA H100 80GB HBM3"
	driverVersion = "570.124.06"
	// gpuScope is the scope of the gpu receiver.
	gpuScope = "github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver"
	// sourceName is nvidia.gpu.source of all GPUs here.
	sourceName = "simulated"
)

// Host is a machine with GPUs and an agent that reads them.
type Host struct {
	Name string
	GPUs []*GPU
	// Driver is the version of the driver.
	Driver string
	// start is the time of the first reading.
	start time.Time
	last  time.Time
}

// GPU is a GPU of a host. Whoever uses it sets what it does.
type GPU struct {
	// ID is hw.id.
	ID    string
	Index int
	// Use is the share of time in which a kernel runs; Power is in watts.
	Use, Power float64
	// Workloads are those that hold its memory.
	Workloads []*Workload
	// Failed reports whether the GPU has failed. Throttled is the share of time in
	// which heat slows it down.
	Failed    bool
	Throttled float64

	source
	busy, throttled float64
}

// Workload holds memory of a GPU.
type Workload struct {
	// Attrs are the attributes by which the gpu receiver describes it.
	Attrs []Attr
	// Memory is in bytes.
	Memory int64
}

func newHost(seed int64, name string, gpus int) *Host {
	h := &Host{Name: name, Driver: driverVersion}
	for i := range gpus {
		random := newSource(seed, fmt.Sprintf("%s/gpu%d", name, i))
		h.GPUs = append(h.GPUs, &GPU{ID: "GPU-" + random.uuid(), Index: i, Power: idlePower, source: random})
	}
	return h
}

// Hold adds a workload and returns it.
func (g *GPU) Hold(memory int64, attrs ...Attr) *Workload {
	w := &Workload{Attrs: attrs, Memory: memory}
	g.Workloads = append(g.Workloads, w)
	return w
}

// Release removes all workloads and ends the work.
func (g *GPU) Release() {
	g.Workloads, g.Use, g.Power = nil, 0, idlePower
}

// read returns what the host's agent sends at a reading.
func (h *Host) read(name string, at time.Time) scenario.Batch {
	if h.start.IsZero() {
		h.start, h.last = at, at
	}
	md := pmetric.NewMetrics()
	for _, g := range h.GPUs {
		g.busy += g.Use * at.Sub(h.last).Seconds()
		g.throttled += g.Throttled * at.Sub(h.last).Seconds()
		h.readGPU(md.ResourceMetrics().AppendEmpty(), g, at)
	}
	h.last = at
	h.readHost(md.ResourceMetrics().AppendEmpty(), at)
	return scenario.Batch{Scenario: name, Signal: sentlog.SignalMetrics, Metrics: md}
}

func (h *Host) readGPU(rm pmetric.ResourceMetrics, g *GPU, at time.Time) {
	bus := fmt.Sprintf("0000:%02x:00.0", 0x19+0x11*g.Index)
	put(rm.Resource().Attributes(), []Attr{
		{"host.name", h.Name}, {"hw.id", g.ID}, {"hw.type", "gpu"}, {"hw.vendor", "NVIDIA"}, {"hw.name", productName},
		{"hw.model", productName[len("NVIDIA "):]}, {"hw.driver_version", h.Driver}, {"nvidia.gpu.index", g.Index},
		{"nvidia.gpu.pci.bus_id", bus}, {"nvidia.gpu.source", sourceName}, simulated,
	})
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(gpuScope)
	p := points{sm: sm, start: h.start, at: at, common: []Attr{
		{"host.name", h.Name}, {"hw.id", g.ID}, {"nvidia.gpu.index", g.Index}, {"nvidia.gpu.source", sourceName},
	}}
	isGPU := Attr{"hw.type", "gpu"}
	used := int64(0)
	for _, w := range g.Workloads {
		used += w.Memory
		p.count("nvidia.gpu.workload.memory.usage", "By", false, float64(w.Memory), w.Attrs...)
	}
	p.count("hw.gpu.memory.limit", "By", false, memoryLimit)
	p.count("hw.gpu.memory.usage", "By", false, float64(used))
	p.count("nvidia.gpu.memory.reserved", "By", false, reserved)
	p.gauge("hw.gpu.memory.utilization", "1", float64(used)/memoryLimit)
	general := Attr{"hw.gpu.task", "general"}
	use, power := g.Use, g.Power
	if use > 0 && use < 1 {
		use, power = min(1, g.near(use, 0.03)), g.near(power, 0.03)
	}
	p.gauge("hw.gpu.utilization", "1", use, general)
	p.count("nvidia.gpu.busy.time", "s", true, g.busy, general)
	heat := Attr{"nvidia.gpu.throttle.reason", "hw_thermal_slowdown"}
	p.count("nvidia.gpu.throttle.time", "s", true, g.throttled, heat)
	throttles := 0.0
	if g.Throttled > 0 && g.Float64() < g.Throttled {
		throttles = 1
	}
	p.count("nvidia.gpu.throttle.active", "1", false, throttles, heat)
	p.gauge("hw.power", "W", power, isGPU)
	p.gauge("nvidia.gpu.power.limit", "W", powerLimit, Attr{"nvidia.gpu.power.limit.type", "enforced"})
	p.gauge("hw.temperature", "Cel", 31+power/18, isGPU, Attr{"hw.sensor_location", "gpu"})
	is := "ok"
	if g.Failed {
		is = "failed"
	}
	for _, state := range []string{"ok", "degraded", "failed", "predicted_failure"} {
		current := 0.0
		if state == is {
			current = 1
		}
		p.count("hw.status", "1", false, current, isGPU, Attr{"hw.state", state})
	}
	p.count("nvidia.gpu.info", "", false, 1, Attr{"hw.name", productName}, Attr{"hw.driver_version", h.Driver}, Attr{"nvidia.gpu.pci.bus_id", bus})
}

// FallOffTheBus has a GPU of a host fail as the driver reports it, with XID 79.
func (s *Site) FallOffTheBus(h *Host, index int) {
	g := h.GPUs[index]
	g.Failed = true
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	put(rl.Resource().Attributes(), []Attr{{"host.name", h.Name}, {"hw.id", g.ID}, {"hw.type", "gpu"}, simulated})
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(gpuScope)
	record := sl.LogRecords().AppendEmpty()
	record.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
	record.SetEventName("nvidia.gpu.xid")
	record.SetSeverityNumber(plog.SeverityNumberFatal)
	record.SetSeverityText("FATAL")
	record.Body().SetStr("XID 79: the GPU has fallen off the bus")
	put(record.Attributes(), []Attr{
		{"host.name", h.Name}, {"hw.id", g.ID}, {"nvidia.gpu.index", g.Index}, {"hw.name", productName},
		{"nvidia.gpu.xid.code", 79}, {"nvidia.gpu.source", sourceName},
	})
	s.errors = append(s.errors, scenario.Batch{Scenario: s.name, Signal: sentlog.SignalLogs, Logs: ld})
}

// readHost writes the state of the driver, which is of the whole host.
func (h *Host) readHost(rm pmetric.ResourceMetrics, at time.Time) {
	ofHost := []Attr{{"host.name", h.Name}, {"nvidia.gpu.source", sourceName}}
	put(rm.Resource().Attributes(), ofHost, []Attr{{"hw.driver_version", h.Driver}, simulated})
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(gpuScope)
	p := points{sm: sm, start: h.start, at: at, common: ofHost}
	p.count("nvidia.gpu.driver.state", "1", false, 1, Attr{"nvidia.gpu.driver.state", "ok"})
}
