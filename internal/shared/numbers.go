package shared

import "slices"

// OneIf returns 1 if something holds, else 0.
func OneIf[T int | int64 | float64](holds bool) T {
	if holds {
		return 1
	}
	return 0
}

// Median returns the median of values, the mean of the two in the middle if their number is
// even, and 0 if there are none. It sorts values.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(n-1)/2]/2 + values[n/2]/2 // the sum of two may be infinite
}

// Sum returns the sum of values.
func Sum[T int64 | float64](values []T) (sum T) {
	for _, value := range values {
		sum += value
	}
	return sum
}

// Mean returns the mean of values, NaN if there are none.
func Mean(values []float64) float64 {
	return Sum(values) / float64(len(values))
}
