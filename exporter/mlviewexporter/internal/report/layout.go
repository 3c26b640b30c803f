package report

import "github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"

// page is a report as its forms show it: sections with tables, items and figures.
type page struct {
	Title, Summary string
	// Service and Run name the run, as telemetry does.
	Service, Run cell
	State        string
	// Unreal says that the data is simulated or recorded; nil if it is neither.
	Unreal   *fact
	Facts    []fact
	Sections []section
	Footer   string
}

// cell is a text. Said reports whether telemetry has said it: the other texts are
// the report's own words and numbers.
type cell struct {
	Text string
	Said bool
}

// own returns a text of the report.
func own(words string) cell { return cell{Text: words} }

// said returns a text of telemetry, in a form that hides nothing.
func said(words string) cell { return cell{Text: text.Printable(words), Said: words != ""} }

// fact is a value with its name.
type fact struct {
	Name  string
	Value cell
}

// section is a part of the report. What it has not is left out.
type section struct {
	ID, Title string
	// Notes are paragraphs above the rest.
	Notes   [][]cell
	Items   []item
	Tables  []table
	Bars    []bar
	Figures []figure
}

// item is something that needs more than a row.
type item struct {
	// Tone is bad for what lasts, else empty.
	Tone string
	Head []cell
	// Lines are what is known of it, with a name each.
	Lines []fact
	// Commands are to be copied.
	Commands []string
}

// table is a table with a caption. Number says which columns have numbers.
type table struct {
	Caption string
	Heads   []string
	Number  []bool
	Rows    [][]cell
}

// bar is a whole and its parts.
type bar struct {
	Caption string
	Parts   []part
}

// part is a part of a bar. Shade is its color.
type part struct {
	Name  string
	Shade int
	Share float64
	// Value is the part with its unit.
	Value string
}

// figure is one or two curves over the same axis.
type figure struct {
	Title string
	// Says has the range and the last value in words.
	Says  string
	Lines []line
	// Top and Bottom are the ends of the axis of values, Left and Right those of the
	// other axis.
	Top, Bottom, Left, Right string
	Marks                    []figureMark
}

// line is a curve in a figure: its path in a box of 1000 by 100.
type line struct{ Name, Path string }

// figureMark is a mark on a figure, At a fraction of its width.
type figureMark struct {
	Number int
	Kind   string
	At     float64
}
