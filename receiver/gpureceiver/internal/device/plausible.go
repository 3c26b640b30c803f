package device

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// DropImplausible makes each reading that cannot be true unavailable and
// calls dropped with the name of the value, once for each of them.
func (g *GPU) DropImplausible(dropped func(value string)) {
	r := &g.Readings
	for i := range quantities {
		q := &quantities[i]
		if number := q.of(r); number.Known && !q.contains(number.Value) {
			*number = Number{}
			dropped(q.name)
		}
	}
	for i := range quantitySets {
		set := &quantitySets[i]
		numbers := set.of(r)
		for name, value := range numbers {
			if !set.contains(value) {
				delete(numbers, name)
				dropped(set.name)
			}
		}
	}
	for i := range r.Thermal.Fans {
		if fan := &r.Thermal.Fans[i]; fan.Known && !fanRatio.contains(fan.Value) {
			*fan = Number{}
			dropped("thermal.fan_speed_ratio")
		}
	}

	limit := memoryBytes
	if r.Memory.Total.Known {
		limit.high = r.Memory.Total.Value
	}
	for _, part := range []struct {
		name    string
		reading *Number
	}{
		{"memory.used", &r.Memory.Used},
		{"memory.reserved", &r.Memory.Reserved},
	} {
		if part.reading.Known && !limit.contains(part.reading.Value) {
			*part.reading = Number{}
			dropped(part.name)
		}
	}
	for i := range g.Processes {
		p := &g.Processes[i]
		if p.Memory.Known && !limit.contains(p.Memory.Value) {
			p.Memory = Number{}
			dropped("process.memory")
		}
		for name, value := range p.Utilization {
			if !ratio.contains(value) {
				delete(p.Utilization, name)
				dropped("process.utilization")
			}
		}
	}
}

// contains is written so that NaN is outside.
func (b bounds) contains(value float64) bool {
	return value >= b.low && value <= b.high && !math.IsInf(value, 0)
}

// CheckNames returns an error for a name that none of the fixed lists has,
// which a recording could carry.
func (r *Readings) CheckNames() error {
	for i := range quantitySets {
		set := &quantitySets[i]
		for name := range set.of(r) {
			if !slices.Contains(set.names, name) {
				return fmt.Errorf("%s has %q; allowed are %q", set.name, name, set.names)
			}
		}
	}
	return nil
}

// KeepReadings drops what a recording could not hold: what is no number, and
// names that none of the fixed lists has.
func (r *Readings) KeepReadings() {
	for i := range quantities {
		if number := quantities[i].of(r); !isReading(number.Value) {
			*number = Number{}
		}
	}
	for i := range quantitySets {
		quantitySets[i].of(r).KeepReadings(quantitySets[i].names)
	}
	for i := range r.Thermal.Fans {
		if fan := &r.Thermal.Fans[i]; !isReading(fan.Value) {
			*fan = Number{}
		}
	}
}

// KeepReadings drops what is no number, and names that are not in a list.
func (n Numbers) KeepReadings(names []string) {
	maps.DeleteFunc(n, func(name string, value float64) bool {
		return !isReading(value) || !slices.Contains(names, name)
	})
}
