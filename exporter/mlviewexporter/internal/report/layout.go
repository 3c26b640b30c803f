package report

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
)

// document is a report as its forms show it: sections with tables, items and figures.
type document struct {
	Title string
	// Service and Run name the run, as telemetry does.
	Service, Run, Summary, Footer cell
	State                         string
	// Unreal says that the data is simulated or recorded; nil if it is neither.
	Unreal   *fact
	Facts    []fact
	Sections []section
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

// note returns a paragraph of the report's own.
func note(words string) [][]cell { return [][]cell{{own(words)}} }

// fact is a value with its name.
type fact struct {
	Name  string
	Value cell
}

// known returns the facts that have a value.
func known(facts []fact) []fact {
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value.Text == "" })
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
	// Command is to be copied, if there is one.
	Command string
}

// table is a table with a caption. It has rows.
type table struct {
	Caption string
	Heads   []head
	Rows    [][]cell
}

// head is the title of a column. Number reports whether the column has numbers.
type head struct {
	Title  string
	Number bool
}

// tableOf returns a table with a row for each of the rows and without the columns that no
// row has, none without any row. A # before a title is the sign of a column of numbers.
func tableOf[T any](caption string, titles []string, rows []T, cells func(i int, one *T) []cell) []table {
	if len(rows) == 0 {
		return nil
	}
	t := table{Caption: caption, Rows: make([][]cell, len(rows))}
	all := make([][]cell, len(rows))
	for i := range rows {
		all[i] = cells(i, &rows[i])
	}
	for column, title := range titles {
		if !slices.ContainsFunc(all, func(row []cell) bool { return row[column].Text != "" }) {
			continue
		}
		name, number := strings.CutPrefix(title, "#")
		t.Heads = append(t.Heads, head{name, number})
		for i, row := range all {
			t.Rows[i] = append(t.Rows[i], row[column])
		}
	}
	return []table{t}
}

// bar is a whole and its parts.
type bar struct {
	Caption string
	Parts   []part
}

// part is a part of a bar. Shade is its color, From where it begins.
type part struct {
	Name        cell
	Shade       int
	From, Share float64
	// Value is the part with its unit.
	Value cell
}

// figure is one or two curves over the same axis.
type figure struct {
	Title cell
	// Says has the range and the last value in words.
	Says  cell
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
