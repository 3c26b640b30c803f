package main

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// dots is how many dots a unit of length has; with fewer, letters run together.
// All lengths here are in units of about one pixel of Grafana's.
const dots = 1.25

// canvas is a picture with its origin at the top left.
type canvas struct {
	image  *vgimg.Canvas
	draw   draw.Canvas
	height float64
}

func newCanvas(width, height float64) *canvas {
	image := vgimg.NewWith(
		vgimg.UseWH(vg.Length(width), vg.Length(height)),
		vgimg.UseDPI(int(72*dots)),
		vgimg.UseBackgroundColor(page),
	)
	return &canvas{image: image, draw: draw.New(image), height: height}
}

// save writes the picture as PNG.
func (c *canvas) save(path string) error {
	var text bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&text, c.image.Image()); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644) //nolint:gosec // a picture of the documentation
}

// box is a part of the picture.
type box struct{ x, y, w, h float64 }

func (c *canvas) point(x, y float64) vg.Point {
	return vg.Point{X: vg.Length(x), Y: vg.Length(c.height - y)}
}

func (c *canvas) fill(b box, with color.Color) {
	if b.w <= 0 || b.h <= 0 {
		return
	}
	c.draw.FillPolygon(with, []vg.Point{c.point(b.x, b.y), c.point(b.x+b.w, b.y), c.point(b.x+b.w, b.y+b.h), c.point(b.x, b.y+b.h)})
}

func (c *canvas) frame(b box, with color.Color) {
	c.line(with, 1, b.x, b.y, b.x+b.w, b.y, b.x+b.w, b.y+b.h, b.x, b.y+b.h, b.x, b.y)
}

// line draws through points, given as x and y by turns.
func (c *canvas) line(with color.Color, width float64, xy ...float64) {
	var points []vg.Point
	for i := 1; i < len(xy); i += 2 {
		points = append(points, c.point(xy[i-1], xy[i]))
	}
	c.draw.StrokeLines(draw.LineStyle{Color: with, Width: vg.Length(width)}, points)
}

// style is how text looks.
type style struct {
	size      float64
	bold      bool
	mono      bool
	color     color.Color
	alignment text.XAlignment
}

func (s style) text() text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(s.size)}
	if s.mono {
		face.Variant = "Mono"
	}
	if s.bold {
		face.Weight = xfont.WeightBold
	}
	with := s.color
	if with == nil {
		with = ink
	}
	return text.Style{Color: with, Font: face, XAlign: s.alignment, YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
}

func (s style) width(words string) float64 { return float64(s.text().Width(words)) }

// write puts one line of text with its middle at y.
func (c *canvas) write(s style, x, y float64, words string) {
	if words == "" {
		return
	}
	c.draw.FillText(s.text(), c.point(x, y), words)
}

// fit shortens text to a width.
func (s style) fit(words string, width float64) string {
	if s.width(words) <= width {
		return words
	}
	runes := []rune(words)
	for n := len(runes) - 1; n > 0; n-- {
		if short := strings.TrimRight(string(runes[:n]), " ") + "…"; s.width(short) <= width {
			return short
		}
	}
	return ""
}

// wrap breaks text into lines of a width.
func (s style) wrap(words string, width float64) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(words) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && s.width(longer) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	return append(lines, line)
}

// The colours of the page, those of Grafana's light theme.
var (
	page   = rgb("#f4f5f5")
	paper  = rgb("#ffffff")
	edge   = rgb("#dfe0e4")
	ink    = rgb("#24292e")
	faint  = rgb("#6c7077")
	rule   = rgb("#e9eaee")
	banner = rgb("#fff3d6")
)

func rgb(hex string) color.NRGBA {
	c := color.NRGBA{A: 0xff}
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
		panic(err)
	}
	return c
}

func faded(c color.NRGBA, to float64) color.NRGBA {
	c.A = uint8(255 * to)
	return c
}

// named are the colours that the dashboards name.
var named = map[string]color.NRGBA{
	"green": rgb("#56a64b"), "semi-dark-green": rgb("#37872d"), "dark-green": rgb("#19730e"),
	"blue": rgb("#3274d9"), "light-blue": rgb("#5794f2"), "semi-dark-blue": rgb("#1f60c4"),
	"orange": rgb("#ff780a"), "red": rgb("#e02f44"), "dark-red": rgb("#ad0317"),
	"yellow": rgb("#e0b400"), "semi-dark-yellow": rgb("#cc9d00"),
	"purple": rgb("#a352cc"), "semi-dark-purple": rgb("#8f3bb8"),
	"text": ink, "gray": rgb("#9fa4ac"),
}

func colorNamed(name string) (color.NRGBA, error) {
	c, ok := named[name]
	if !ok {
		return c, fmt.Errorf("the colour %q is not drawn", name)
	}
	return c, nil
}

// palette is what series get one after the other.
var palette = []color.NRGBA{
	rgb("#5aa64b"), rgb("#e0a800"), rgb("#2f9fb8"), rgb("#ef843c"), rgb("#e24d42"), rgb("#1f78c1"), rgb("#ba43a9"), rgb("#705da0"),
	rgb("#508642"), rgb("#a68a00"), rgb("#447ebc"), rgb("#c15c17"), rgb("#890f02"), rgb("#0a437c"), rgb("#6d1f62"), rgb("#584477"),
}
