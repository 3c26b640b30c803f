package text

import (
	"cmp"
	"slices"
	"strings"
)

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
}

// laid is a column as it is shown: its title and its texts of all rows, its width, and the
// least that this can be.
type laid[T any] struct {
	column[T]
	texts            []string
	width, narrowest int
}

// table lays out rows under their titles within a width in cells. Each row is
// followed by the lines that after returns for it; after may be nil. leftOut are
// the titles of the columns for which there is no room.
func table[T any](columns []column[T], rows []T, limit int, after func(*T) []string) (lines, leftOut []string) {
	var shown []*laid[T]
	for _, c := range columns {
		one, sent := &laid[T]{column: c, texts: []string{c.title}, width: cells(c.title)}, false
		for i := range rows {
			text := c.text(&rows[i])
			one.texts, one.width, sent = append(one.texts, text), max(one.width, cells(text)), sent || text != ""
		}
		if one.narrowest = one.width; c.least > 0 {
			one.narrowest = min(one.width, max(c.least, cells(c.title)))
		}
		if sent {
			shown = append(shown, one)
		}
	}
	shown, leftOut = fit(shown, limit)
	lines = tableRow(shown, 0, limit)
	for i := range rows {
		lines = append(lines, tableRow(shown, i+1, limit)...)
		if after != nil {
			lines = append(lines, after(&rows[i])...)
		}
	}
	return lines, leftOut
}

// fit omits and narrows columns so that they are at most limit cells wide together, if that
// is possible. leftOut are the titles of those that it omits.
func fit[T any](shown []*laid[T], limit int) (_ []*laid[T], leftOut []string) {
	excess := -columnGap - limit
	for _, c := range shown {
		excess += c.narrowest + columnGap
	}
	for excess > 0 {
		next := slices.MaxFunc(shown, func(a, b *laid[T]) int { return cmp.Compare(a.leave, b.leave) })
		if next.leave == 0 {
			break
		}
		leftOut = append(leftOut, next.title)
		shown = slices.DeleteFunc(shown, func(c *laid[T]) bool { return c == next })
		excess -= next.narrowest + columnGap
	}
	for _, c := range shown {
		excess += c.width - c.narrowest
	}
	for ; excess > 0; excess-- {
		var widest *laid[T]
		for _, c := range shown {
			if c.width > c.narrowest && (widest == nil || c.width > widest.width) {
				widest = c
			}
		}
		if widest == nil {
			break
		}
		widest.width--
	}
	return shown, leftOut
}

// tableRow returns the lines of the titles, which are row 0, or of a row.
func tableRow[T any](shown []*laid[T], row, limit int) []string {
	parts := make([][]string, len(shown))
	height := 1
	for i, c := range shown {
		switch text := c.texts[row]; {
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
		texts := make([]string, len(shown))
		for i, c := range shown {
			if n < len(parts[i]) {
				texts[i] = parts[i][n]
			}
			space := strings.Repeat(" ", max(0, c.width-cells(texts[i])))
			if c.right {
				texts[i] = space + texts[i]
			} else {
				texts[i] += space
			}
		}
		lines[n] = cut(strings.TrimRight(strings.Join(texts, strings.Repeat(" ", columnGap)), " "), limit)
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
