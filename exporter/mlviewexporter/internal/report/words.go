package report

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// clock writes a time in UTC, empty for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// at writes a time of the report's day without the date.
func (r *Report) at(t time.Time) string {
	day := r.Time.UTC().Format(time.DateOnly + " ")
	return strings.TrimSuffix(strings.TrimPrefix(clock(t), day), " UTC")
}

// summary says what became of the run in one sentence.
func (r *Report) summary() string {
	said := "The run " + cmp.Or(stateWords[r.Run.State], "is "+text.Words(r.Run.State))
	switch {
	case r.Run.StateSince == nil || r.Run.State == mlattr.RunRunning:
	case mlattr.RunOver(r.Run.State):
		said = "The run " + r.Run.State + " at " + clock(*r.Run.StateSince)
	default:
		said += " since " + clock(*r.Run.StateSince)
	}
	if r.Run.Steps != nil {
		said += ", after " + counted(*r.Run.Steps, "step")
	}
	var kinds []string
	lasting := false
	for _, p := range r.Problems {
		if lasting = lasting || p.Lasts; p.Lasts && (p.Kind != mlattr.ProblemLooksHung || r.Run.State != mlattr.RunStalled) {
			kinds = append(kinds, text.Kind(p.Kind))
		}
	}
	switch {
	case len(kinds) > 0:
		said += "; problems that last: " + strings.Join(kinds, ", ")
	case !lasting && len(r.Problems) > 0:
		said += "; no problem lasts, " + counted(float64(len(r.Problems)), "problem") + " before"
	case !lasting:
		said += "; no problem was seen"
	}
	if len(r.Failures) > 0 {
		said += "; " + counted(float64(len(r.Failures)+r.LeftOut["failures"]), "kind") + " of failure"
	}
	return said + "."
}

func counted(n float64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return text.Count(&n) + " " + thing
}

// title returns the title of a name, or its words.
func title(name string) cell { return own(cmp.Or(titles[name], text.Words(name))) }

// number writes a number with its unit, empty if it is nil.
func number(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	switch unit {
	case "s":
		return text.Seconds(v)
	case "1":
		return text.Percent(v)
	case "By":
		return text.GiB(v)
	case "{token}/s", "{sample}/s":
		return text.Number(v) + "/s"
	case "{step}", "{token}", "{error}", "{attempt}":
		return text.Count(v)
	case "W", "h":
		return text.Number(v) + " " + unit
	}
	if size := math.Abs(*v); size >= 0.01 && size < 1000 {
		return strconv.FormatFloat(*v, 'f', 4, 64)
	}
	return strconv.FormatFloat(*v, 'g', 4, 64)
}
