package dashboards

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	prom "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// View is what is chosen above the panels: the variables and the time.
type View struct {
	// Choices are the variables that are not left at All, as regular
	// expressions.
	Choices map[string]string
	Start   time.Time
	End     time.Time
	Step    time.Duration
}

// SourceInterval is timeInterval of the data source, the least that
// $__rate_interval rests on.
const SourceInterval = 15 * time.Second

var reference = regexp.MustCompile(`\$(\w+)`)

// Expand replaces the variables of a query.
func (v View) Expand(board Dashboard, expr string) string {
	values := map[string]string{
		"__range":         seconds(v.End.Sub(v.Start)),
		"__rate_interval": seconds(max(v.Step+SourceInterval, 4*SourceInterval)),
	}
	for _, variable := range board.Templating.List {
		values[variable.Name] = variable.AllValue
		if choice, ok := v.Choices[variable.Name]; ok {
			values[variable.Name] = choice
		}
	}
	return reference.ReplaceAllStringFunc(expr, func(found string) string {
		if value, ok := values[found[1:]]; ok {
			return value
		}
		return found
	})
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

// Series is one line of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Last returns the newest value.
func (s Series) Last() float64 { return s.Points[len(s.Points)-1].Value }

// Ask evaluates one query of a panel: over the time of the view, or at its end.
func Ask(ctx context.Context, api prom.API, board Dashboard, target Target, view View) ([]Series, error) {
	expr := view.Expand(board, target.Expr)
	var value model.Value
	var err error
	if target.Instant {
		value, _, err = api.Query(ctx, expr, view.End)
	} else {
		value, _, err = api.QueryRange(ctx, expr, prom.Range{Start: view.Start, End: view.End, Step: view.Step})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	return series(value)
}

func series(value model.Value) ([]Series, error) {
	var all []Series
	switch value := value.(type) {
	case model.Matrix:
		for _, stream := range value {
			one := Series{Labels: labelsOf(stream.Metric)}
			for _, sample := range stream.Values {
				one.Points = append(one.Points, Point{sample.Timestamp.Time(), float64(sample.Value)})
			}
			all = append(all, one)
		}
	case model.Vector:
		for _, sample := range value {
			one := Series{Labels: labelsOf(sample.Metric)}
			one.Points = []Point{{sample.Timestamp.Time(), float64(sample.Value)}}
			all = append(all, one)
		}
	default:
		return nil, fmt.Errorf("a %s is no answer that a panel shows", value.Type())
	}
	return all, nil
}

func labelsOf(metric model.Metric) map[string]string {
	labels := map[string]string{}
	for name, value := range metric {
		labels[string(name)] = string(value)
	}
	return labels
}

// Line is a line of a table: text by the name of its column, and numbers.
type Line struct {
	Text   map[string]string
	Number map[string]float64
}

// Table asks all queries of a table, merges what is said of the same labels and
// names the columns.
func Table(ctx context.Context, api prom.API, board Dashboard, panel Panel, view View) ([]Line, error) {
	var answers []merged
	for _, target := range panel.Targets {
		found, err := Ask(ctx, api, board, target, view)
		if err != nil {
			return nil, err
		}
		field := "Value #" + target.RefID
		if len(panel.Targets) == 1 {
			field = "Value"
		}
		answers = append(answers, merged{field, found})
	}
	lines := merge(answers)
	for _, transformation := range panel.Transformations {
		switch transformation.ID {
		case "merge":
		case "organize":
			organize(transformation, lines)
		default:
			return nil, fmt.Errorf("%s: the transformation %s is not understood", panel.Title, transformation.ID)
		}
	}
	return lines, nil
}

// merged is an answer and the name of its values.
type merged struct {
	field string
	found []Series
}

// merge puts values on one line whose labels do not contradict each other, as
// far as all answers have them.
func merge(answers []merged) (lines []Line) {
	var common []string
	first := true
	for _, answer := range answers {
		if len(answer.found) == 0 {
			continue
		}
		var names []string
		for name := range answer.found[0].Labels {
			names = append(names, name)
		}
		// A label is a field of the answer if any of its series has it.
		for _, s := range answer.found {
			for name := range s.Labels {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if first {
			common, first = names, false
		}
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(names, name) })
	}
	byKey := map[string][]int{}
	for _, answer := range answers {
		for _, s := range answer.found {
			var key strings.Builder
			for _, name := range common {
				key.WriteString(s.Labels[name] + "\x00")
			}
			at := -1
			for _, candidate := range byKey[key.String()] {
				if fits(lines[candidate], s.Labels, answer.field) {
					at = candidate
					break
				}
			}
			if at < 0 {
				lines = append(lines, Line{Text: map[string]string{}, Number: map[string]float64{}})
				at = len(lines) - 1
				byKey[key.String()] = append(byKey[key.String()], at)
			}
			maps.Copy(lines[at].Text, s.Labels)
			lines[at].Number[answer.field] = s.Last()
		}
	}
	return lines
}

// fits reports whether a line has nothing else to say of the labels and has no
// value of the field yet.
func fits(line Line, labels map[string]string, field string) bool {
	if _, taken := line.Number[field]; taken {
		return false
	}
	for name, value := range labels {
		if have, ok := line.Text[name]; ok && have != value {
			return false
		}
	}
	return true
}

// organize renames the fields of all lines.
func organize(transformation Transformation, lines []Line) {
	for field, name := range transformation.Options.RenameByName {
		if name == "" {
			continue
		}
		for _, line := range lines {
			if text, ok := line.Text[field]; ok {
				delete(line.Text, field)
				line.Text[name] = text
			}
			if number, ok := line.Number[field]; ok {
				delete(line.Number, field)
				line.Number[name] = number
			}
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*),\s*(\w+)\)$`)

// Values returns what a variable can be chosen to be.
func Values(ctx context.Context, api prom.API, board Dashboard, variable Variable, view View) ([]string, error) {
	query := labelValues.FindStringSubmatch(variable.Query.Query)
	if query == nil {
		return nil, fmt.Errorf("%s: the query of a variable is not understood: %s", variable.Name, variable.Query.Query)
	}
	found, _, err := api.LabelValues(ctx, query[2], []string{view.Expand(board, query[1])}, view.Start, view.End)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, value := range found {
		values = append(values, string(value))
	}
	return values, nil
}
