package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// view shows screens: in place on a terminal, otherwise one after the other.
type view struct {
	out io.Writer
	// terminal is the descriptor of the terminal, or -1.
	terminal int
	drawn    bool
}

func newView(out io.Writer) *view {
	v := &view{out: out, terminal: -1}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		v.terminal = int(file.Fd())
	}
	return v
}

// draw writes a page with one call, so that a terminal never shows half of it.
func (v *view) draw(p page) error {
	text := v.text(p)
	_, err := io.WriteString(v.out, text)
	return err
}

func (v *view) text(p page) string {
	// The width for logs, which have none.
	fit := size{width: 120}
	if v.terminal >= 0 {
		width, height, err := term.GetSize(v.terminal)
		if err != nil {
			width, height = 0, 0
		}
		// The cursor ends below the last line.
		fit = clampSize(width, height-1)
	}
	lines := screen(p, fit)
	first := !v.drawn
	v.drawn = true
	if v.terminal < 0 {
		return block(lines, first)
	}
	return frame(lines, first)
}

// block separates a screen from the previous one by a line.
func block(lines []string, first bool) string {
	separator := strings.Repeat("-", 80) + "\n"
	if first {
		separator = ""
	}
	return separator + strings.Join(lines, "\n") + "\n"
}

// frame writes a screen over the previous one. It clears the terminal only
// once, and then the rest of each line, to prevent flickering.
func frame(lines []string, first bool) string {
	start := "\x1b[H"
	if first {
		start = "\x1b[2J\x1b[H"
	}
	return start + strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
}
