package device

import "math"

// Limits beyond which a reading cannot be true. Drivers are known to give
// garbage now and then, such as a utilization of 808334905 %.
const (
	// maxPower is in watts. The largest boards draw less than 3 kW.
	maxPower = 10_000
	// minTemperature and maxTemperature are in degrees Celsius. GPUs switch
	// themselves off well below 150 °C.
	minTemperature = -60
	maxTemperature = 200
	// maxMemory is in bytes, 1 PiB.
	maxMemory = 1 << 50
	// maxEnergy is in joules: 10 kW for more than 100 years.
	maxEnergy = 4e13
)

// DropImplausible makes each reading that cannot be true unavailable and
// calls dropped with the name of the value, once for each of them.
func (g *GPU) DropImplausible(dropped func(value string)) {
	dropOutside(&g.Utilization, 0, 1, "utilization", dropped)
	dropOutside(&g.EncoderUtilization, 0, 1, "encoder_utilization", dropped)
	dropOutside(&g.DecoderUtilization, 0, 1, "decoder_utilization", dropped)
	dropOutside(&g.Power, 0, maxPower, "power", dropped)
	dropOutside(&g.Energy, 0, maxEnergy, "energy", dropped)
	dropOutside(&g.Temperature, minTemperature, maxTemperature, "temperature", dropped)
	dropOutside(&g.MemoryTemperature, minTemperature, maxTemperature, "memory_temperature", dropped)

	if g.MemoryTotal.Known && (g.MemoryTotal.Value == 0 || g.MemoryTotal.Value > maxMemory) {
		g.MemoryTotal = Reading[uint64]{}
		dropped("memory_total")
	}
	limit := uint64(maxMemory)
	if g.MemoryTotal.Known {
		limit = g.MemoryTotal.Value
	}
	if g.MemoryUsed.Known && g.MemoryUsed.Value > limit {
		g.MemoryUsed = Reading[uint64]{}
		dropped("memory_used")
	}
	kept := g.Processes[:0]
	for _, p := range g.Processes {
		if p.Memory > limit {
			dropped("process_memory")
			continue
		}
		kept = append(kept, p)
	}
	g.Processes = kept
}

func dropOutside(r *Reading[float64], low, high float64, value string, dropped func(string)) {
	if !r.Known {
		return
	}
	// Written so that NaN is outside.
	if r.Value >= low && r.Value <= high && !math.IsInf(r.Value, 0) {
		return
	}
	*r = Reading[float64]{}
	dropped(value)
}
