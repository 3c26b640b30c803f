package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// format writes a value with a unit of Grafana's, with as many digits behind
// the point as are asked for, or as are needed where decimals is -1.
func format(unit string, decimals int, v float64) (string, error) {
	switch {
	case math.IsNaN(v):
		return "NaN", nil
	case math.IsInf(v, 0):
		return "∞", nil
	}
	digits := func(v float64, scaled bool) string {
		if decimals >= 0 {
			return strconv.FormatFloat(v, 'f', decimals, 64)
		}
		return fixed(v, scaled)
	}
	scale := func(v, base float64, units ...string) string {
		i := 0
		for math.Abs(v) >= base && i < len(units)-1 {
			v /= base
			i++
		}
		return strings.TrimSpace(digits(v, true) + " " + units[i])
	}
	switch unit {
	case "none":
		return digits(v, false), nil
	case "short":
		return scale(v, 1000, "", "K", "Mil", "Bil", "Tri"), nil
	case "percentunit":
		return digits(100*v, true) + " %", nil
	case "bytes":
		return scale(v, 1024, "B", "KiB", "MiB", "GiB", "TiB"), nil
	case "binBps":
		return scale(v, 1024, "B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"), nil
	case "watt":
		return scale(v, 1000, "W", "kW", "MW"), nil
	case "watth":
		return scale(v, 1000, "Wh", "kWh", "MWh"), nil
	case "hertz":
		return scale(v, 1000, "Hz", "kHz", "MHz", "GHz"), nil
	case "celsius":
		return digits(v, true) + " °C", nil
	case "sci":
		return strconv.FormatFloat(v, 'e', 2, 64), nil
	case "h":
		return duration(3600*v, digits), nil
	case "s":
		return duration(v, digits), nil
	}
	return "", fmt.Errorf("the unit %q is not drawn", unit)
}

// duration writes seconds in the unit that suits them.
func duration(v float64, digits func(float64, bool) string) string {
	for _, u := range []struct {
		from, in float64
		name     string
	}{
		{86400, 86400, "d"}, {3600, 3600, "h"}, {60, 60, "min"}, {1, 1, "s"}, {1e-3, 1e-3, "ms"}, {0, 1e-6, "µs"},
	} {
		if math.Abs(v) >= u.from {
			if v == 0 {
				return "0 s"
			}
			return digits(v/u.in, true) + " " + u.name
		}
	}
	return ""
}

// fixed shows three digits that count, without zeros at the end.
func fixed(v float64, scaled bool) string {
	abs := math.Abs(v)
	places := 0
	switch {
	case abs == 0 || abs >= 100:
	case abs >= 10:
		places = 1
	case abs >= 1:
		places = 2
	case abs >= 0.001 || scaled:
		places = 3
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
