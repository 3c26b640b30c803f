package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemFailing, failing, mlattr.ProblemToolErrors) }

// failing finds services of whose requests or calls more fail.
func failing(s *service) {
	s.proportion(s.FailingOf+" failed", &s.Failing, math.NaN(), "Open the failures of the service and reproduce the newest one.")
}
