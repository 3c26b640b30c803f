package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDropImplausible(t *testing.T) {
	gpu := GPU{
		Readings: Readings{
			Activity: Activities{
				General: Activity{Utilization: Read(8083343.05)},
				Encoder: Activity{Utilization: Read(math.NaN())},
				Decoder: Activity{Utilization: Read(1.0)},
			},
			Memory:  Memory{Total: Read(100.0), Used: Read(101.0)},
			Power:   Power{Draw: Read(math.Inf(1)), Energy: Read(-1.0), Limits: Numbers{"enforced": 700, "min": -1}},
			Thermal: Thermal{GPU: Read(255.0), Memory: Read(-5.0), Fans: []Number{Read(0.3), Read(40.0)}},
		},
		Processes: []Process{{Memory: Read(101.0), Utilization: Numbers{"general": 2}}, {Memory: Read(100.0)}},
	}
	var dropped []string
	gpu.DropImplausible(func(value string) { dropped = append(dropped, value) })
	assert.Equal(t, GPU{
		Readings: Readings{
			Activity: Activities{Decoder: Activity{Utilization: Read(1.0)}},
			Memory:   Memory{Total: Read(100.0)},
			Power:    Power{Limits: Numbers{"enforced": 700}},
			Thermal:  Thermal{Memory: Read(-5.0), Fans: []Number{Read(0.3), {}}},
		},
		Processes: []Process{{Utilization: Numbers{}}, {Memory: Read(100.0)}},
	}, gpu)
	assert.Equal(t, []string{
		"activity.general.utilization", "activity.encoder.utilization", "power.draw", "power.energy", "thermal.gpu",
		"power.limit", "thermal.fan_speed_ratio", "memory.used", "process.memory", "process.utilization",
	}, dropped)
}

func TestDropImplausibleKeepsWhatIsUnavailable(t *testing.T) {
	gpu := GPU{Readings: Readings{Memory: Memory{Used: Read(5.0)}}}
	gpu.DropImplausible(func(value string) { t.Error(value) })
	assert.Equal(t, GPU{Readings: Readings{Memory: Memory{Used: Read(5.0)}}}, gpu)
}

func TestAnEmptyMemoryIsUnavailable(t *testing.T) {
	gpu := GPU{Readings: Readings{Memory: Memory{Total: Read(0.0), Used: Read(0.0)}}}
	gpu.DropImplausible(func(string) {})
	assert.False(t, gpu.Readings.Memory.Total.Known, "a division by it would be none")
}
