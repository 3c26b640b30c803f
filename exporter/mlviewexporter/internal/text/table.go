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

// fit lays out rows under their titles within a width in cells: it omits and narrows columns
// so that they are at most limit cells wide together, if that is possible. leftOut are the
// titles of those that it omits.
func fit[T any](columns []column[T], rows []T, limit int) (shown []*laid[T], leftOut []string) {
	excess := -columnGap - limit
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
			excess += one.narrowest + columnGap
		}
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
		// The widest one that can be narrower.
		width := func(c *laid[T]) int {
			if c.width == c.narrowest {
				return 0
			}
			return c.width
		}
		widest := slices.MaxFunc(shown, func(a, b *laid[T]) int { return cmp.Compare(width(a), width(b)) })
		if width(widest) == 0 {
			break
		}
		widest.width--
	}
	return shown, leftOut
}

// tableRow returns the lines of the titles, which are row 0, or of a row.
func tableRow[T any](shown []*laid[T], row, limit int) (lines []string) {
	for height, n := 1, 0; n < height; n++ {
		texts := make([]string, len(shown))
		for i, c := range shown {
			parts := []string{cut(cmp.Or(c.texts[row], missing), c.width)}
			if c.wrap {
				parts = wrap(cmp.Or(c.texts[row], missing), c.width, maxCellLines)
			}
			if height = max(height, len(parts)); n < len(parts) {
				texts[i] = parts[n]
			}
			space := strings.Repeat(" ", max(0, c.width-cells(texts[i])))
			if c.right {
				texts[i] = space + texts[i]
			} else {
				texts[i] += space
			}
		}
		lines = append(lines, cut(strings.TrimRight(strings.Join(texts, strings.Repeat(" ", columnGap)), " "), limit))
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
