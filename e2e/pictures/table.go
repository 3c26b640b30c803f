package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
)

// grafanaWidth is how wide a panel of the whole grid is where the widths of
// columns are meant.
const grafanaWidth = 1840.0

// drawTable draws lines below the names of their columns.
func drawTable(c *canvas, at box, panel dashboards.Panel, columns []string, lines []dashboards.Line) error {
	if len(lines) == 0 {
		nothing(c, at, panel)
		return nil
	}
	sortLines(panel, lines)
	fields := make([]dashboards.Field, len(columns))
	widths := make([]float64, len(columns))
	rest, open := at.w, 0
	for i, column := range columns {
		field, err := panel.FieldOf(column)
		if err != nil {
			return err
		}
		fields[i] = field
		widths[i] = float64(field.Custom.Width) * pageWidth / grafanaWidth
		rest -= widths[i]
		if widths[i] == 0 {
			open++
		}
	}
	for i := range widths {
		if widths[i] == 0 {
			widths[i] = max(60, rest/float64(open))
		}
	}
	total := 0.0
	for _, w := range widths {
		total += w
	}
	if total > at.w+1 {
		for i := range widths {
			widths[i] *= at.w / total
		}
	}

	const height = 21.0
	head, body := style{size: 11, bold: true, color: faint}, style{size: 11}
	x := at.x
	for i, column := range columns {
		c.write(head, x, at.y+9, head.fit(column, widths[i]-8))
		x += widths[i]
	}
	c.line(edge, 1, at.x, at.y+19, at.x+at.w, at.y+19)
	fits := int((at.h - height) / height)
	more := 0
	if len(lines) > fits {
		more = len(lines) - fits + 1
		fits--
	}
	for n, line := range lines[:min(fits, len(lines))] {
		y := at.y + height*float64(n+1) + height/2
		if n > 0 {
			c.line(rule, 0.7, at.x, y-height/2, at.x+at.w, y-height/2)
		}
		x := at.x
		for i, column := range columns {
			if err := drawCell(c, box{x, y - height/2, widths[i] - 8, height}, body, fields[i], column, line); err != nil {
				return err
			}
			x += widths[i]
		}
	}
	if more > 0 {
		c.write(style{size: 10.5, color: faint}, at.x, at.y+at.h-6, fmt.Sprintf("and %d lines more", more))
	}
	return nil
}

func drawCell(c *canvas, at box, s style, field dashboards.Field, column string, line dashboards.Line) error {
	if text, ok := line.Text[column]; ok {
		words, with, found, err := mapped(field, text)
		if err != nil {
			return err
		}
		if !found {
			words, with = text, ink
		}
		if len(field.Links) > 0 && words != "" {
			with = named["semi-dark-blue"]
		}
		if found && len(field.Links) == 0 {
			s.bold = true
		}
		s.color = with
		c.write(s, at.x, at.y+at.h/2, s.fit(words, at.w))
		return nil
	}
	value, ok := line.Number[column]
	if !ok {
		s.color = faint
		c.write(s, at.x, at.y+at.h/2, "–")
		return nil
	}
	words, with, err := shownAs(field, value)
	if err != nil {
		return err
	}
	switch field.Custom.CellOptions.Type {
	case "gauge":
		bar := box{at.x, at.y + 5, at.w - 48, at.h - 10}
		c.fill(bar, rule)
		c.fill(box{bar.x, bar.y, bar.w * min(1, value / *field.Max), bar.h}, with)
		s.color = with
		c.write(s, at.x+at.w-42, at.y+at.h/2, words)
		return nil
	case "color-text":
		s.color = with
	case "", "auto":
		s.color = ink
	default:
		return fmt.Errorf("cells of type %q are not drawn", field.Custom.CellOptions.Type)
	}
	c.write(s, at.x, at.y+at.h/2, s.fit(words, at.w))
	return nil
}

// sortLines puts lines in the order that the table asks for, and those alike in
// that of their text.
func sortLines(panel dashboards.Panel, lines []dashboards.Line) {
	text := func(line dashboards.Line) string {
		var words []string
		for name, value := range line.Text {
			words = append(words, name+value)
		}
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	slices.SortFunc(lines, func(a, b dashboards.Line) int { return strings.Compare(text(a), text(b)) })
	for _, by := range panel.Options.SortBy {
		slices.SortStableFunc(lines, func(a, b dashboards.Line) int {
			order := strings.Compare(a.Text[by.DisplayName], b.Text[by.DisplayName])
			if _, numbers := a.Number[by.DisplayName]; numbers || hasNumber(b, by.DisplayName) {
				order = compare(numberOf(a, by.DisplayName), numberOf(b, by.DisplayName))
			}
			if by.Desc {
				order = -order
			}
			return order
		})
	}
}

func hasNumber(line dashboards.Line, column string) bool {
	_, ok := line.Number[column]
	return ok
}

// numberOf is below all numbers where there is none.
func numberOf(line dashboards.Line, column string) float64 {
	if v, ok := line.Number[column]; ok {
		return v
	}
	v, _ := strconv.ParseFloat("-Inf", 64)
	return v
}
