package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// of returns readings of these quantities.
func of(numbers map[*Quantity]float64) (r Readings) {
	for q, number := range numbers {
		q.Store(&r, number)
	}
	return r
}

func TestDropImplausible(t *testing.T) {
	fan := FanSpeeds.Members
	gpu := GPU{
		Readings: of(map[*Quantity]float64{
			GeneralEngine.Utilization: 8083343.05, EncoderEngine.Utilization: math.NaN(), DecoderEngine.Utilization: 1,
			MemoryTotal: 100, MemoryUsed: 101,
			PowerDraw: math.Inf(1), Energy: -1, PowerLimit: 700, PowerInstantGPU: -1,
			GPUTemperature: 255, MemoryTemperature: -5, fan[0]: 0.3, fan[1]: 40,
		}),
		Processes: []Process{{Memory: Read(101), Utilization: Numbers{"general": 2}}, {Memory: Read(100)}},
	}
	var dropped []string
	gpu.DropImplausible(func(value string) { dropped = append(dropped, value) })
	assert.Equal(t, GPU{
		Readings: of(map[*Quantity]float64{
			DecoderEngine.Utilization: 1, MemoryTotal: 100, PowerLimit: 700, MemoryTemperature: -5, fan[0]: 0.3,
		}),
		Processes: []Process{{Utilization: Numbers{}}, {Memory: Read(100)}},
	}, gpu)
	assert.Equal(t, []string{
		"activity.general.utilization", "activity.encoder.utilization", "memory.used", "power.draw", "power.instant_gpu", "power.energy",
		"thermal.gpu", "thermal.fan_speed_ratio", "process.memory", "process.utilization",
	}, dropped)
}

func TestDropImplausibleKeepsWhatIsUnavailable(t *testing.T) {
	gpu := GPU{Readings: of(map[*Quantity]float64{MemoryUsed: 5})}
	gpu.DropImplausible(func(value string) { t.Error(value) })
	assert.Equal(t, GPU{Readings: of(map[*Quantity]float64{MemoryUsed: 5})}, gpu)
}

func TestAnEmptyMemoryIsUnavailable(t *testing.T) {
	gpu := GPU{Readings: of(map[*Quantity]float64{MemoryTotal: 0, MemoryUsed: 0})}
	gpu.DropImplausible(func(string) {})
	assert.False(t, MemoryTotal.Of(&gpu.Readings).Known, "a division by it would be none")
}
