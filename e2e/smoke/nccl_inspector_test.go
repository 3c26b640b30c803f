package smoke

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// inspectorBody is a request of NCCL's Inspector, written from its source, with the
// nanoseconds of each point: gauges only, every attribute a text. Its second metric is
// of the verbose mode, in which each operation is a point.
const inspectorBody = `{"resourceMetrics":[{"resource":{"attributes":[
{"key":"service.name","value":{"stringValue":"nccl-inspector"}},
{"key":"ml.run.id","value":{"stringValue":"sft-7"}},
{"key":"ml.rank.global","value":{"stringValue":"9"}}]},"scopeMetrics":[{"scope":{"name":"nccl-inspector"},"metrics":[
{"name":"nccl_bus_bandwidth_gbs","description":"NCCL bus bandwidth for collective operations","unit":"GB/s","gauge":{"dataPoints":[
{"attributes":[{"key":"gpu","value":{"stringValue":"GPU1"}},{"key":"comm_name","value":{"stringValue":"unknown"}},
{"key":"version","value":{"stringValue":"v5.1"}},{"key":"node","value":{"stringValue":"node-2"}},
{"key":"n_nodes","value":{"stringValue":"2"}},{"key":"nranks","value":{"stringValue":"16"}},
{"key":"message_size","value":{"stringValue":"4-5MB"}},{"key":"collective","value":{"stringValue":"AllReduce"}},
{"key":"algo_proto","value":{"stringValue":"RING_SIMPLE"}}],"timeUnixNano":"%[1]d","asDouble":181.25}]}},
{"name":"nccl_collective_algobw_gbs","description":"NCCL algorithm bandwidth for collective operations","unit":"GB/s","gauge":{"dataPoints":[%[2]s]}},
{"name":"nccl_collectives_total","description":"NCCL collectives enqueued into the inspector ring buffer","unit":"1","gauge":{"dataPoints":[
{"attributes":[{"key":"version","value":{"stringValue":"v5.1"}},{"key":"node","value":{"stringValue":"node-2"}},
{"key":"gpu","value":{"stringValue":"GPU1"}}],"timeUnixNano":"%[1]d","asDouble":4711}]}}]}]}]}`

// What NCCL's Inspector sends is in Prometheus by run, rank and node; its counters are
// counters, and an operation is no series.
func TestNCCLInspector(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml")})
	now := time.Now().UnixNano()
	var operations []string
	for i := range 100 {
		operations = append(operations, fmt.Sprintf(`{"attributes":[{"key":"node","value":{"stringValue":"node-2"}},
{"key":"gpu","value":{"stringValue":"GPU1"}},{"key":"comm_id","value":{"stringValue":"0x5d1f"}},{"key":"coll_sn","value":{"stringValue":"%[2]d"}},
{"key":"coll_msg_size_bytes","value":{"stringValue":"%[2]d"}}],"timeUnixNano":"%[1]d","asDouble":%[2]d}`, now, i))
	}
	body := fmt.Sprintf(inspectorBody, now, strings.Join(operations, ","))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+collector.Address(t, "receivers::otlp::protocols::http")+"/v1/metrics", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		of := harness.Labels{"ml_run_id": "sft-7", "ml_rank_global": "9", "host_name": "node-2", "gpu": "GPU1"}
		for name, value := range map[string]float64{
			"nccl_bus_bandwidth_gbs_GB_per_second":     181.25,
			"nccl_collectives_total":                   4711,
			"nccl_collective_algobw_gbs_GB_per_second": 99,
		} {
			found := harness.Select(samples, name, of)
			if assert.Len(c, found, 1, name) {
				assert.InDelta(c, value, found[0].Value, 0, name)
				for _, label := range []string{"coll_sn", "comm_id", "coll_msg_size_bytes"} {
					assert.NotContains(c, found[0].Labels, label, name)
				}
			}
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}
