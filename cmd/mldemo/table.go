package main

import "strings"

// columnGap separates the columns of a table.
const columnGap = 2

// column describes one column of a table.
type column struct {
	title string
	// right aligns numbers to the right.
	right bool
	// least is the minimal width of a text column, in cells; 0 means that the
	// column is never narrowed, because a part of a number is a different
	// number.
	least int
	// leave orders the columns to omit if the table is too wide: the highest
	// value first. Columns with 0 stay.
	leave int
}

// table lays out rows under their titles within a width in cells. The texts
// must be printable.
func table(columns []column, rows [][]string, limit int) []string {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = cells(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], cells(row[i]))
		}
	}
	present := make([]bool, len(columns))
	for i := range present {
		present[i] = true
	}
	for tableWidth(widths, present) > limit {
		if i := widestToSqueeze(columns, widths, present); i >= 0 {
			widths[i]--
			continue
		}
		if i := firstToLeave(columns, present); i >= 0 {
			present[i] = false
			continue
		}
		break
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	lines := make([]string, 0, 1+len(rows))
	lines = append(lines, tableLine(columns, widths, present, titles, limit))
	for _, row := range rows {
		lines = append(lines, tableLine(columns, widths, present, row, limit))
	}
	return lines
}

func tableWidth(widths []int, present []bool) int {
	total := 0
	for i, w := range widths {
		if present[i] {
			total += w + columnGap
		}
	}
	return total
}

func widestToSqueeze(columns []column, widths []int, present []bool) int {
	widest := -1
	for i, c := range columns {
		if present[i] && c.least > 0 && widths[i] > max(c.least, cells(c.title)) && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	return widest
}

func firstToLeave(columns []column, present []bool) int {
	first := -1
	for i, c := range columns {
		if present[i] && c.leave > 0 && (first < 0 || c.leave > columns[first].leave) {
			first = i
		}
	}
	return first
}

func tableLine(columns []column, widths []int, present []bool, row []string, limit int) string {
	var line strings.Builder
	for i, c := range columns {
		if !present[i] {
			continue
		}
		text := cut(row[i], widths[i])
		space := strings.Repeat(" ", widths[i]-cells(text))
		line.WriteString(strings.Repeat(" ", columnGap))
		if c.right {
			line.WriteString(space + text)
		} else {
			line.WriteString(text + space)
		}
	}
	return cut(strings.TrimRight(line.String(), " "), limit)
}
