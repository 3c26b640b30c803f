package processes_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
)

var (
	begin = time.Unix(1_700_000_000, 0)
	one   = processes.Key{Host: "n1", PID: "7"}
)

func after(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

func TestCoresAreTheIncreaseOfTheCounter(t *testing.T) {
	var c processes.CPU
	c.Time(one, 100, begin, begin)
	assert.Empty(t, c.Cores(begin), "one value says nothing")
	c.Time(one, 115, after(10), after(10))
	c.Time(one, 400, after(10.01), after(10)) // too soon
	assert.Equal(t, map[processes.Key]float64{one: 1.5}, c.Cores(after(10)))
	c.Time(one, 1, after(20), after(20))
	assert.Empty(t, c.Cores(after(20)), "the process has started again")
	c.Time(one, 2, after(15), after(21))
	assert.Empty(t, c.Cores(after(21)), "its clock was set back")
	c.Use(one, 0.25, after(22))
	assert.Equal(t, map[processes.Key]float64{one: 0.25}, c.Cores(after(22)))
	assert.Empty(t, c.Cores(after(22+301)), "it is gone")
}

func TestProcessesAreLimited(t *testing.T) {
	var c processes.CPU
	c.Use(processes.Key{Host: "n1", Service: "s"}, 1, begin)
	assert.Empty(t, c.Cores(begin), "a service may have many processes")
	for i := range 10_000 {
		c.Use(processes.Key{Host: "n1", PID: strconv.Itoa(i)}, 1, begin)
	}
	assert.Len(t, c.Cores(begin), 8192)
}
