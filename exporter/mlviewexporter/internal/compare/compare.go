// Package compare finds where two noisy curves part. Its rules know neither runs
// nor telemetry.
//
// Two runs report a number, such as their loss, at different positions, such as
// steps, and with noise. Three steps of robust statistics tell a difference that
// stays from noise:
//
//  1. Both curves are smoothed by a running median (J. W. Tukey, Exploratory Data
//     Analysis, 1977).
//  2. The noise of each curve is 1.4826 times the median of absolute deviations (F. R.
//     Hampel, 1974) of second differences between its values (T. Gasser et al., 1986). A few outliers
//     do not move it. The standard error of the smoothed curve follows from it, or
//     from the differences between smoothed values a window apart, if these are
//     larger: noise may last.
//  3. The curves part where the smoothed ones are further apart than a band of three
//     standard errors of their difference and one percent of their size, for at
//     least five positions in a row and on the same side.
package compare

import (
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// minBins is the least number of common positions that is judged, maxBins the
	// largest.
	minBins = 20
	maxBins = 240
	// window is the number of values of a running median.
	window = 9
	// inARow is how many positions outside of the band count as parted.
	inARow = 5
	// standardErrors is the width of the band. tolerance is its least width, as a
	// fraction of the curves' size.
	standardErrors = 3
	tolerance      = 0.01
	// consistency makes a median of absolute deviations the standard deviation of
	// normal noise, medianError is the standard error of a median in those of a mean.
	consistency = 1.4826
	medianError = 1.2533
)

// Curve is a number at positions. Both lists have the same length.
type Curve struct{ At, Values []float64 }

// Parting says whether and where two curves part.
type Parting struct {
	// From and To are the positions that both curves have, Positions is the number
	// of positions that were compared.
	From, To  float64
	Positions int
	// Parted reports whether they part. At is the first position at which they do;
	// there, Value and Other are the smoothed curves, and Band the difference beyond
	// which they part.
	Parted             bool
	At                 float64
	Value, Other, Band float64
}

// Part compares a curve with another one. ok is false if they have fewer than 20
// positions in common. Values that are no finite numbers are left out, and so are
// positions that do not come after all earlier ones.
func Part(curve, other Curve) (p Parting, ok bool) {
	a, b := curve.clean(), other.clean()
	if len(a.At) == 0 || len(b.At) == 0 {
		return p, false
	}
	a, b = common(a, b)
	p.Positions = len(a.At)
	if p.Positions < minBins {
		return p, false
	}
	at := make([]float64, len(a.At))
	for i := range at {
		at[i] = (a.At[i] + b.At[i]) / 2
	}
	p.From, p.To = at[0], at[len(at)-1]
	p.find(at, a.on(at), b.on(at))
	return p, true
}

// find looks for the first of enough positions in a row at which the smoothed
// curves are outside of the band.
func (p *Parting) find(at, a, b []float64) {
	smoothA, smoothB := smooth(a), smooth(b)
	spread := math.Hypot(standardError(a, smoothA), standardError(b, smoothB))
	first, before := 0, 0
	for i := range at {
		apart := smoothA[i] - smoothB[i]
		band := standardErrors*spread + tolerance*max(math.Abs(smoothA[i]), math.Abs(smoothB[i]))
		side := 0
		if math.Abs(apart) > band {
			side = int(math.Copysign(1, apart))
		}
		if side != before {
			first, before = i, side
			p.Band = band
		}
		if side != 0 && i-first+1 == inARow {
			p.Parted, p.At, p.Value, p.Other = true, at[first], smoothA[first], smoothB[first]
			return
		}
	}
	p.Band = 0
}

// clean returns the curve with finite numbers at increasing positions.
func (c Curve) clean() Curve {
	var out Curve
	last := math.Inf(-1)
	for i, at := range c.At[:min(len(c.At), len(c.Values))] {
		if v := c.Values[i]; finite(at) && finite(v) && at > last {
			out.At, out.Values = append(out.At, at), append(out.Values, v)
			last = at
		}
	}
	return out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// common returns both curves at the same positions, as means over bins: the smallest
// ones in which each curve has a value, or wider ones if they are too many.
func common(a, b Curve) (inA, inB Curve) {
	from := max(a.At[0], b.At[0])
	i, _ := slices.BinarySearch(a.At, from)
	j, _ := slices.BinarySearch(b.At, from)
	for i < len(a.At) && j < len(b.At) {
		end := max(a.At[i], b.At[j])
		i = inA.addMean(a, i, end)
		j = inB.addMean(b, j, end)
	}
	thinned := func(c Curve) Curve { return Curve{Thinned(c.At, maxBins), Thinned(c.Values, maxBins)} }
	return thinned(inA), thinned(inB)
}

// addMean adds the mean of the values from index i on up to the position end, and
// returns the index after them.
func (c *Curve) addMean(of Curve, i int, end float64) int {
	at, value, n := 0.0, 0.0, 0.0
	for ; i < len(of.At) && of.At[i] <= end; i++ {
		at, value, n = at+of.At[i], value+of.Values[i], n+1
	}
	c.At, c.Values = append(c.At, at/n), append(c.Values, value/n)
	return i
}

// on returns the curve's values at positions, on straight lines between its own.
func (c Curve) on(at []float64) []float64 {
	values := make([]float64, len(at))
	for i, x := range at {
		k, exact := slices.BinarySearch(c.At, x)
		switch {
		case exact:
			values[i] = c.Values[k]
		case k == 0:
			values[i] = c.Values[0]
		case k == len(c.At):
			values[i] = c.Values[k-1]
		default:
			share := (x - c.At[k-1]) / (c.At[k] - c.At[k-1])
			values[i] = c.Values[k-1] + share*(c.Values[k]-c.Values[k-1])
		}
	}
	return values
}

// smooth returns the running median. At the ends its window is shorter.
func smooth(values []float64) []float64 {
	out := make([]float64, len(values))
	near := make([]float64, 0, window)
	for i := range values {
		half := min(window/2, i, len(values)-1-i)
		near = append(near[:0], values[i-half:i+half+1]...)
		out[i] = shared.Median(near)
	}
	return out
}

// standardError returns the standard error of a smoothed curve.
func standardError(values, smoothed []float64) float64 {
	return max(deviation(values, 1)*medianError/math.Sqrt(window), deviation(smoothed, window))
}

// deviation returns the standard deviation of the noise of values that are a
// distance apart, by their second differences, in which a straight line has none.
func deviation(values []float64, distance int) float64 {
	apart := make([]float64, 0, len(values))
	for i := distance; i+distance < len(values); i++ {
		apart = append(apart, math.Abs(values[i-distance]-2*values[i]+values[i+distance])/math.Sqrt(6))
	}
	return consistency * shared.Median(apart)
}

// Thinned returns at most a number of values, means of as many neighbors, the last of fewer.
func Thinned(values []float64, most int) (out []float64) {
	for part := range slices.Chunk(values, max(1, (len(values)+most-1)/most)) {
		out = append(out, shared.Mean(part))
	}
	return out
}
