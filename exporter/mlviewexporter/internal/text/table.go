package text

import "strings"

const (
	// columnGap separates the columns of a table.
	columnGap = 2
	// maxCellLines limits the lines of a wrapped cell.
	maxCellLines = 4
	// missing stands in a cell for a value that nobody sent.
	missing = "-"
)

// column describes one column of a table of T. A column without a text in any
// row is omitted.
type column[T any] struct {
	title string
	// text returns the printable text of a cell, empty if it is not known.
	text func(*T) string
	// right aligns numbers to the right.
	right bool
	// least is the least width of a text column, in cells; 0 means that the
	// column is never narrowed, because a part of a number is another number.
	least int
	// leave orders the columns to omit if the table is too wide: the highest
	// value first. Columns with 0 stay.
	leave int
	// wrap breaks long texts into lines instead of cutting them.
	wrap bool
	// width is the width of the column in the table.
	width int
}

// table lays out rows under their titles within a width in cells. Each row is
// followed by the lines that after returns for it; after may be nil. leftOut are
// the titles of the columns for which there is no room.
func table[T any](columns []column[T], rows []T, limit int, after func(*T) []string) (lines, leftOut []string) {
	texts := make([][]string, len(rows))
	for i := range rows {
		texts[i] = make([]string, len(columns))
		for j, c := range columns {
			texts[i][j] = c.text(&rows[i])
		}
	}
	shown, leftOut := fit(columns, texts, limit)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	lines = tableRow(columns, shown, titles, limit)
	for i := range rows {
		lines = append(lines, tableRow(columns, shown, texts[i], limit)...)
		if after != nil {
			lines = append(lines, after(&rows[i])...)
		}
	}
	return lines, leftOut
}

// fit returns the columns to show and sets their widths so that they are at
// most limit cells wide together, if omitting columns can achieve that. leftOut
// are the titles of those that it omits for this.
func fit[T any](columns []column[T], texts [][]string, limit int) (shown []int, leftOut []string) {
	for i := range columns {
		c := &columns[i]
		sent := false
		c.width = cells(c.title)
		for _, row := range texts {
			c.width = max(c.width, cells(row[i]))
			sent = sent || row[i] != ""
		}
		if sent {
			shown = append(shown, i)
		}
	}
	for total(columns, shown, leastWidth) > limit {
		first := -1
		for i, index := range shown {
			if leave := columns[index].leave; leave > 0 && (first < 0 || leave > columns[shown[first]].leave) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		leftOut = append(leftOut, columns[shown[first]].title)
		shown = append(shown[:first:first], shown[first+1:]...)
	}
	for excess := total(columns, shown, fullWidth) - limit; excess > 0; excess-- {
		widest := -1
		for _, index := range shown {
			c := &columns[index]
			if c.width > leastWidth(c) && (widest < 0 || c.width > columns[widest].width) {
				widest = index
			}
		}
		if widest < 0 {
			break
		}
		columns[widest].width--
	}
	return shown, leftOut
}

func fullWidth[T any](c *column[T]) int { return c.width }

func leastWidth[T any](c *column[T]) int {
	if c.least == 0 {
		return c.width
	}
	return min(c.width, max(c.least, cells(c.title)))
}

func total[T any](columns []column[T], shown []int, width func(*column[T]) int) int {
	sum := 0
	for _, index := range shown {
		sum += width(&columns[index]) + columnGap
	}
	return sum - columnGap
}

// tableRow returns the lines of one row.
func tableRow[T any](columns []column[T], shown []int, texts []string, limit int) []string {
	parts := make([][]string, len(shown))
	height := 1
	for i, index := range shown {
		c := columns[index]
		text := texts[index]
		switch {
		case text == "":
			parts[i] = []string{missing}
		case c.wrap:
			parts[i] = wrap(text, c.width, maxCellLines)
		default:
			parts[i] = []string{cut(text, c.width)}
		}
		height = max(height, len(parts[i]))
	}
	lines := make([]string, height)
	for n := range lines {
		var line strings.Builder
		for i, index := range shown {
			c := columns[index]
			text := ""
			if n < len(parts[i]) {
				text = parts[i][n]
			}
			space := strings.Repeat(" ", max(0, c.width-cells(text)))
			if c.right {
				text = space + text
			} else {
				text += space
			}
			if i > 0 {
				line.WriteString(strings.Repeat(" ", columnGap))
			}
			line.WriteString(text)
		}
		lines[n] = cut(strings.TrimRight(line.String(), " "), limit)
	}
	return lines
}

// wrap breaks a printable text at spaces into at most most lines, none of them
// wider than limit. Words that are too wide are broken; what does not fit into
// the last line is cut.
func wrap(text string, limit, most int) []string {
	var lines []string
	for len(lines) < most-1 && cells(text) > limit {
		end, used := 0, 0
		for i, r := range text {
			if used += runeCells(r); used > limit {
				end = i
				break
			}
		}
		// The space may be the character that no longer fits.
		if space := strings.LastIndexByte(text[:end+1], ' '); space > 0 {
			end = space
		}
		if end == 0 {
			break
		}
		lines = append(lines, strings.TrimRight(text[:end], " "))
		text = strings.TrimLeft(text[end:], " ")
	}
	return append(lines, cut(text, limit))
}
