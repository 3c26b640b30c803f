package serving

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// fitted is the number of requests from which the effect of the output on the
// duration is estimated, once.
const fitted = 256

// fit is the least-squares line of the logarithm of the duration over that of the
// output tokens. What remains is the duration at the typical output: the analysis
// of covariance (Fisher, Statistical Methods for Research Workers, 1932).
type fit struct {
	n                        int
	sumX, sumY, sumXX, sumXY float64
	slope, typical           float64
}

// learn reports whether the duration of a request can be compared. A request with
// output adds to the line as long as that is unknown.
func (f *fit) learn(s *Span) bool {
	switch {
	case s.Output <= 0:
		// It has no output, as an embedding, or does not say.
		return f.n == 0
	case f.n >= fitted:
		return true
	}
	f.add(logTokens(s.Output), math.Log(s.Seconds))
	return false
}

func (f *fit) add(x, y float64) {
	f.n++
	f.sumX, f.sumY, f.sumXX, f.sumXY = f.sumX+x, f.sumY+y, f.sumXX+x*x, f.sumXY+x*y
	if f.n < fitted {
		return
	}
	n := float64(f.n)
	f.typical = f.sumX / n
	if variance := f.sumXX/n - f.typical*f.typical; variance > 1e-6 {
		// Time does not shrink with the output, nor grow faster than it.
		f.slope = min(max((f.sumXY/n-f.typical*f.sumY/n)/variance, 0), 1)
	}
}

// duration returns the observation of the duration of a request that can be compared.
func (f *fit) duration(s *Span, version uint8) shift.Observation {
	o := shift.Observation{Value: math.Log(s.Seconds), Work: [shift.Works]float64{logTokens(s.Input), math.NaN()}, Version: version}
	if s.Output > 0 {
		x := logTokens(s.Output)
		o.Value -= f.slope * (x - f.typical)
		o.Work[1] = (1 - f.slope) * x
	}
	return o
}

// typicalCalls is the number of calls whose mean duration is typical of a function.
const typicalCalls = 30

// typical is the mean logarithm of the durations of a function's first calls.
type typical struct {
	n   int
	sum float64
}

// relative returns the logarithm of a duration less what is typical. ok is false as
// long as that is unknown.
func (t *typical) relative(value float64) (relative float64, ok bool) {
	if t.n < typicalCalls {
		t.n++
		t.sum += value
		return 0, false
	}
	return value - t.sum/typicalCalls, true
}

// logTokens returns the logarithm of a number of tokens, NaN if it is unknown.
func logTokens(n int64) float64 {
	if n < 0 {
		return math.NaN()
	}
	return math.Log(1 + float64(n))
}
