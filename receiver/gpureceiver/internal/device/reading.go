package device

import (
	"errors"
	"math"

	"go.yaml.in/yaml/v3"
)

// Reading is a value that can be unavailable. The zero Reading is unavailable, so
// that a missing value never looks like 0. In YAML its key is absent.
type Reading[T float64 | bool] struct {
	Value T
	Known bool
}

type (
	// Number is a numeric reading. Whole numbers are exact up to 2^53, which is
	// more bytes than any memory has.
	Number = Reading[float64]
	// Flag is a reading that is true or false.
	Flag = Reading[bool]
)

// Read returns an available Reading.
func Read[T float64 | bool](value T) Reading[T] {
	return Reading[T]{Value: value, Known: true}
}

// IsZero reports whether the value is unavailable, so that YAML leaves it out.
func (r Reading[T]) IsZero() bool {
	return !r.Known
}

// MarshalYAML writes the bare value, whole numbers without an exponent.
func (r Reading[T]) MarshalYAML() (any, error) {
	if !r.Known {
		return nil, nil
	}
	if number, ok := any(r.Value).(float64); ok {
		return yamlNumber(number), nil
	}
	return r.Value, nil
}

// Largest is above every real value. It keeps sums of a recording's values far
// from an overflow.
const Largest = 1e30

// errNoReading refuses numbers that are no readings.
var errNoReading = errors.New("a reading must be a number from -1e30 to 1e30; leave out unavailable values")

// isReading reports whether a number can be a reading. NaN cannot.
func isReading(number float64) bool {
	return math.Abs(number) <= Largest
}

// UnmarshalYAML reads the bare value. YAML never calls it with null.
func (r *Reading[T]) UnmarshalYAML(node *yaml.Node) error {
	var value T
	if err := node.Decode(&value); err != nil {
		return err
	}
	if number, ok := any(value).(float64); ok && !isReading(number) {
		return errNoReading
	}
	*r = Read(value)
	return nil
}

// Fans are the readings of fans in their order. An unavailable one is null in
// YAML.
type Fans []Number

// UnmarshalYAML keeps nulls, which YAML would leave out.
func (f *Fans) UnmarshalYAML(node *yaml.Node) error {
	var values []*Number
	if err := node.Decode(&values); err != nil {
		return err
	}
	*f = make(Fans, len(values))
	for i, value := range values {
		if value != nil {
			(*f)[i] = *value
		}
	}
	return nil
}

// Numbers are readings by the names of a Set, such as a clock's frequency by its
// domain. A missing name means unavailable.
type Numbers map[string]float64

// UnmarshalYAML reads names and bare values. YAML would make a null 0.
func (n *Numbers) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]*Number
	if err := node.Decode(&values); err != nil {
		return err
	}
	*n = make(Numbers, len(values))
	for name, value := range values {
		if value == nil {
			return errNoReading
		}
		(*n)[name] = value.Value
	}
	return nil
}

// MarshalYAML writes whole numbers without an exponent.
func (n Numbers) MarshalYAML() (any, error) {
	values := make(map[string]any, len(n))
	for name, value := range n {
		values[name] = yamlNumber(value)
	}
	return values, nil
}

// yamlNumber returns a whole number as an integer, so that YAML writes no
// exponent.
func yamlNumber(number float64) any {
	if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
		return int64(number)
	}
	return number
}
