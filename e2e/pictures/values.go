package main

import (
	"image/color"
	"math"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
)

// withValues leaves out what is no number, as Grafana does not draw it.
func withValues(all []dashboards.Series) (kept []dashboards.Series) {
	for _, s := range all {
		var points []dashboards.Point
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				points = append(points, p)
			}
		}
		if len(points) > 0 {
			s.Points = points
			kept = append(kept, s)
		}
	}
	return kept
}

// decimalsOf is how many digits stand behind the point, -1 for what fits.
func decimalsOf(field dashboards.Field) int {
	if field.Decimals == nil {
		return -1
	}
	return *field.Decimals
}

// shownAs writes a value and gives it its colour: a mapping's, else that of the
// last threshold that it has reached.
func shownAs(field dashboards.Field, v float64) (string, color.NRGBA, error) {
	if words, with, ok, err := mapped(field, strconv.FormatFloat(v, 'f', -1, 64)); ok || err != nil {
		return words, with, err
	}
	words, err := format(field.Unit, decimalsOf(field), v)
	if err != nil {
		return "", color.NRGBA{}, err
	}
	with, err := threshold(field, v)
	return words, with, err
}

func mapped(field dashboards.Field, value string) (words string, with color.NRGBA, ok bool, err error) {
	for _, mapping := range field.Mappings {
		if to, found := mapping.Options[value]; found {
			with, err := colorNamed(to.Color)
			return to.Text, with, true, err
		}
	}
	return "", color.NRGBA{}, false, nil
}

func threshold(field dashboards.Field, v float64) (color.NRGBA, error) {
	name := "text"
	if field.Thresholds != nil {
		for _, step := range field.Thresholds.Steps {
			if step.Value == nil || v >= *step.Value {
				name = step.Color
			}
		}
	}
	return colorNamed(name)
}
