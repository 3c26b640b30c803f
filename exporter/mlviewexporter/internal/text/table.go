package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// columnGap separates the columns of a table.
	columnGap = 2
	// maxCellLines limits the lines of a wrapped cell.
	maxCellLines = 4
	// missing stands in a cell for a value that nobody sent.
	missing = "-"
)

// layout describes a section: a table under its name, and a note that says how to read it.
type layout struct {
	Name, Note string
	// Most is the most rows to show.
	Most    int
	Columns []heading
}

// heading describes a column. One without a text in any row is left out.
type heading struct {
	Title string
	// Right is for numbers. Wrap breaks long texts into lines, otherwise they are cut.
	Right, Wrap bool
	// Least is the least width of a column of text, in cells, but no more than that Part of the
	// text's width. Others are never narrowed, because a part of a number is another number.
	Least, Part int
	// Leave is the turn of the column to be omitted if the table is too wide, 0 for never.
	Leave int
}

// column is a column as it is shown: its title and its texts of all rows, its width, and the
// least that this can be.
type column struct {
	heading
	texts            []string
	width, narrowest int
}

// lay lays out the cells of rows within a width in cells: it leaves out columns without a text,
// and omits and narrows others so that all are at most limit cells wide together, if that is
// possible. leftOut are the titles of those that it omits.
func lay(headings []heading, rows [][]string, limit int) (shown []*column, leftOut []string) {
	for i, h := range headings {
		c := &column{heading: h, texts: mlattr.Mapped(rows, func(row []string) string { return row[i] })}
		if strings.Join(c.texts, "") == "" {
			continue
		}
		c.texts = slices.Insert(c.texts, 0, h.Title)
		c.width = slices.Max(mlattr.Mapped(c.texts, cells))
		if c.narrowest = c.width; h.Least > 0 {
			c.narrowest = min(c.width, max(min(h.Least, limit/max(1, h.Part)), cells(h.Title)))
		}
		shown = append(shown, c)
	}
	tooWide := func(width func(*column) int) bool {
		all := -columnGap
		for _, c := range shown {
			all += width(c) + columnGap
		}
		return all > limit
	}
	for turn := range headings {
		at := slices.IndexFunc(shown, func(c *column) bool { return c.Leave == turn+1 })
		if at >= 0 && tooWide(func(c *column) int { return c.narrowest }) {
			leftOut, shown = append(leftOut, shown[at].Title), slices.Delete(shown, at, at+1)
		}
	}
	for tooWide(func(c *column) int { return c.width }) {
		// The widest one that can be narrower.
		narrower := mlattr.Where(slices.Values(shown), func(c *column) bool { return c.width > c.narrowest })
		if len(narrower) == 0 {
			break
		}
		slices.MaxFunc(narrower, func(a, b *column) int { return cmp.Compare(a.width, b.width) }).width--
	}
	return shown, leftOut
}

// tableRow returns the lines of the titles, which are row 0, or of a row.
func tableRow(shown []*column, row, limit int) (lines []string) {
	for height, n := 1, 0; n < height; n++ {
		texts := make([]string, len(shown))
		for i, c := range shown {
			parts := []string{cut(cmp.Or(c.texts[row], missing), c.width)}
			if c.Wrap {
				parts = wrap(cmp.Or(c.texts[row], missing), c.width, maxCellLines)
			}
			if height = max(height, len(parts)); n < len(parts) {
				texts[i] = parts[n]
			}
			space := strings.Repeat(" ", max(0, c.width-cells(texts[i])))
			if c.Right {
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
		lines = append(lines, strings.TrimRight(text[:end], " "))
		text = strings.TrimLeft(text[end:], " ")
	}
	return append(lines, cut(text, limit))
}
