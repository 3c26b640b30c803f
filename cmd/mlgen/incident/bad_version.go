package incident

import "github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"

// badVersion: an agent goes from version 1.8.1 to 1.8.2, and then 12 % of its
// requests fail with one class of error in a tool. Before, 0.4 % did with
// another. Somebody deploys the old version again.
func badVersion(site *fleet.Site) course {
	agent := site.Serve(fleet.Service{
		Name: "support-agent", Version: "1.8.1", Host: "svc-01", Model: "llama-3.3-70b", Tool: "lookup_order", Requests: 3,
	})
	well := func() { agent.Fail(0.004, "ConnectionError", "connection reset by peer") }
	well()
	return course{
		begins: func() {
			agent.Deploy("1.8.2")
			agent.Fail(0.12, "ToolTimeout", "lookup_order did not answer within 2 s")
		},
		ends: func() {
			agent.Deploy("1.8.1")
			well()
		},
	}
}
