package device

import "math"

// Number is a reading. It can be unavailable, which the zero Number is, so that a
// missing value never looks like 0. Whole numbers are exact up to 2^53, which is more
// bytes than any memory has.
type Number struct {
	Value float64
	Known bool
}

// Read returns an available Number.
func Read(value float64) Number {
	return Number{Value: value, Known: true}
}

// IsZero reports whether the value is unavailable, so that YAML leaves it out.
func (n Number) IsZero() bool {
	return !n.Known
}

// MarshalYAML writes the bare value, whole numbers as integers, so that YAML writes no
// exponent.
func (n Number) MarshalYAML() (any, error) {
	if n.Value == math.Trunc(n.Value) && math.Abs(n.Value) < 1<<53 {
		return int64(n.Value), nil
	}
	return n.Value, nil
}

// IsReading reports whether a number can be a reading: from -1e30 to 1e30, which keeps
// sums of a recording's values far from an overflow. NaN cannot.
func IsReading(number float64) bool {
	return math.Abs(number) <= 1e30
}

// Numbers are readings by name, such as a process's use of engines. A missing name
// means unavailable.
type Numbers map[string]float64

// Readings are the values of a GPU or MIG device at one time.
type Readings struct {
	values [maxQuantities]float64
	known  [maxQuantities]bool
}

// Monotonic turns a hardware counter, which restarts at zero whenever the driver
// is loaded, into a counter that never falls.
type Monotonic struct {
	base, last float64
}

// Add takes the hardware counter's value and returns the counter's.
func (m *Monotonic) Add(value float64) float64 {
	if value < m.last {
		m.base += m.last
	}
	m.last = value
	return m.Total()
}

// Total returns the counter's last value.
func (m *Monotonic) Total() float64 {
	return m.base + m.last
}
