package gpureceiver

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestGroupsKeepTheSum(t *testing.T) {
	groups := &groups{limit: 2, index: make(map[workload.Workload]int)}
	for i := range 5 {
		groups.add(workload.Workload{RunID: strconv.Itoa(i)}, device.Read(10), device.Number{})
	}
	groups.add(workload.Workload{RunID: "0"}, device.Read(1), device.Number{})
	groups.add(workload.Workload{}, device.Read(5), device.Number{})
	assert.Equal(t, []groupSum{
		{workload: workload.Workload{RunID: "0"}, memory: device.Read(11)},
		{workload: workload.Workload{RunID: "1"}, memory: device.Read(10)},
		{workload: workload.Workload{}, memory: device.Read(35)},
	}, groups.sums)
	assert.Equal(t, 3, groups.merged)
}
