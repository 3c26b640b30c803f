package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemTailLatency, tailLatency) }

// tailRule: 0.07 and five times the usual share. mostTail is the greatest share that
// is a tail: where more take longer, all do.
var tailRule = shift.ProportionRule{Least: 0.07, Times: 5, Count: 10}

const mostTail = 0.4

// tailLatency finds services of whose requests or calls more take far longer than others.
func tailLatency(s *service) {
	slow := func(what string, of *shift.Tail, unit string) {
		found := of.Over.Find(s.now, &tailRule)
		if found.Shown.Ratio() > mostTail {
			return
		}
		s.proportion(fmt.Sprintf("%s took more than %s", what, figure(math.Exp(of.Limit()), unit)), &found, math.NaN(),
			"Compare a slow trace with a usual one of the same time.")
	}
	slow("requests to agents", &s.AgentTail, "s")
	slow("calls, of what is typical of their functions,", &s.CallTail, "1")
	s.models(func(name string, m *serving.Model) { slow("requests to "+name, &m.Tail, "s") })
}
