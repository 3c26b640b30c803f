package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDropImplausible(t *testing.T) {
	gpu := GPU{
		Utilization:        Read(8083343.05),
		EncoderUtilization: Read(math.NaN()),
		DecoderUtilization: Read(1.0),
		MemoryTotal:        Read(uint64(100)),
		MemoryUsed:         Read(uint64(101)),
		Power:              Read(math.Inf(1)),
		Energy:             Read(-1.0),
		Temperature:        Read(255.0),
		MemoryTemperature:  Read(-5.0),
		Processes:          []Process{{Memory: 101}, {Memory: 100}},
	}
	var dropped []string
	gpu.DropImplausible(func(value string) { dropped = append(dropped, value) })
	assert.Equal(t, GPU{
		DecoderUtilization: Read(1.0),
		MemoryTotal:        Read(uint64(100)),
		MemoryTemperature:  Read(-5.0),
		Processes:          []Process{{Memory: 100}},
	}, gpu)
	assert.Equal(t, []string{
		"utilization", "encoder_utilization", "power", "energy", "temperature", "memory_used", "process_memory",
	}, dropped)
}

func TestDropImplausibleKeepsWhatIsUnavailable(t *testing.T) {
	gpu := GPU{MemoryUsed: Read(uint64(5))}
	gpu.DropImplausible(func(value string) { t.Error(value) })
	assert.Equal(t, GPU{MemoryUsed: Read(uint64(5))}, gpu)
}

func TestAnEmptyMemoryIsUnavailable(t *testing.T) {
	gpu := GPU{MemoryTotal: Read(uint64(0)), MemoryUsed: Read(uint64(0))}
	gpu.DropImplausible(func(string) {})
	assert.False(t, gpu.MemoryTotal.Known, "a division by it would be none")
}
