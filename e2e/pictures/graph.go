package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
)

// drawGraph draws lines over time with their legend below, or areas on top of
// each other.
func drawGraph(c *canvas, at box, panel dashboards.Panel, all []dashboards.Series, view dashboards.View) error {
	if len(all) == 0 {
		nothing(c, at, panel)
		return nil
	}
	colors, err := colorsOf(panel, all)
	if err != nil {
		return err
	}
	const row = 14.0
	listed := min(len(all), max(2, int(at.h*0.36/row)-1))
	legend := box{at.x, at.y + at.h - row*float64(listed+1), at.w, row * float64(listed+1)}
	body := box{at.x, at.y + 7, at.w, at.h - legend.h - 29}

	field := panel.FieldConfig.Defaults
	stacking := field.Custom.Stacking.Mode
	layers := layersOf(all, stacking)
	least, most := boundsOf(layers, field, stacking)
	unit, decimals := field.Unit, decimalsOf(field)
	if stacking == "percent" {
		unit, decimals = "percentunit", 0
	}
	ticks, err := ticksOf(least, most, unit, decimals)
	if err != nil {
		return err
	}
	axis := style{size: 10, color: faint}
	left := 0.0
	for _, tick := range ticks {
		left = max(left, axis.width(tick.Label))
	}
	body.x, body.w = body.x+left+7, body.w-left-9

	x := func(t time.Time) float64 {
		return body.x + body.w*float64(t.Sub(view.Start))/float64(view.End.Sub(view.Start))
	}
	y := func(v float64) float64 { return body.y + body.h*(1-(v-least)/(most-least)) }
	for _, tick := range ticks {
		c.line(rule, 0.8, body.x, y(tick.Value), body.x+body.w, y(tick.Value))
		c.write(axis, body.x-7-axis.width(tick.Label), y(tick.Value), tick.Label)
	}
	drawTimes(c, body, body.y+body.h+2, view)
	for i, layer := range layers {
		for _, piece := range layer.pieces(view.Step) {
			drawPiece(c, piece, colors[i], field.Custom, x, y)
		}
	}
	if field.Thresholds != nil && len(field.Thresholds.Steps) > 1 {
		for _, step := range field.Thresholds.Steps {
			if step.Value == nil || *step.Value > most {
				continue
			}
			with, err := colorNamed(step.Color)
			if err != nil {
				return err
			}
			for from := body.x; from < body.x+body.w; from += 12 {
				c.line(with, 1, from, y(*step.Value), min(from+7, body.x+body.w), y(*step.Value))
			}
		}
	}
	return drawLegend(c, legend, row, panel, all, colors, listed)
}

func colorsOf(panel dashboards.Panel, all []dashboards.Series) ([]color.NRGBA, error) {
	colors := make([]color.NRGBA, len(all))
	for i, s := range all {
		field, err := panel.FieldOf(s.Name)
		if err != nil {
			return nil, err
		}
		colors[i] = palette[i%len(palette)]
		if field.Color.Mode == "fixed" {
			if colors[i], err = colorNamed(field.Color.FixedColor); err != nil {
				return nil, err
			}
		}
	}
	return colors, nil
}

// layer is a series as it is drawn: from and to at each time.
type layer struct {
	at       []time.Time
	from, to []float64
}

// layersOf puts the series on top of each other where they are stacked.
func layersOf(all []dashboards.Series, stacking string) []layer {
	total := map[time.Time]float64{}
	for _, s := range all {
		for _, p := range s.Points {
			total[p.At] += p.Value
		}
	}
	sum := map[time.Time]float64{}
	layers := make([]layer, len(all))
	for i, s := range all {
		for _, p := range s.Points {
			v, base := p.Value, 0.0
			switch stacking {
			case "percent":
				if total[p.At] != 0 {
					v /= total[p.At]
				}
				fallthrough
			case "normal":
				base = sum[p.At]
				sum[p.At] += v
			}
			layers[i].at = append(layers[i].at, p.At)
			layers[i].from = append(layers[i].from, base)
			layers[i].to = append(layers[i].to, base+v)
		}
	}
	return layers
}

// pieces breaks a layer where values are missing.
func (l layer) pieces(step time.Duration) (pieces []layer) {
	begin := 0
	for i := 1; i <= len(l.at); i++ {
		if i < len(l.at) && l.at[i].Sub(l.at[i-1]) <= step+step/2 {
			continue
		}
		pieces = append(pieces, layer{l.at[begin:i], l.from[begin:i], l.to[begin:i]})
		begin = i
	}
	return pieces
}

func boundsOf(layers []layer, field dashboards.Field, stacking string) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, l := range layers {
		for _, v := range l.to {
			least, most = min(least, v), max(most, v)
		}
	}
	if field.Min != nil {
		least = min(least, *field.Min)
	}
	if stacking == "percent" {
		return 0, 1
	}
	if field.Max != nil {
		return least, *field.Max
	}
	if most <= least {
		most = least + 1
	}
	return least, most + (most-least)*0.06
}

// ticksOf are the values at the axis, as the drawing library chooses them, with
// their units.
func ticksOf(least, most float64, unit string, decimals int) ([]plot.Tick, error) {
	scale := 1.0
	// Of bytes the round numbers are powers of 1024.
	for unit == "bytes" || unit == "binBps" {
		if most/scale < 1024 {
			break
		}
		scale *= 1024
	}
	var ticks []plot.Tick
	for _, tick := range (plot.DefaultTicks{}).Ticks(least/scale, most/scale) {
		if tick.IsMinor() {
			continue
		}
		tick.Value *= scale
		if decimals > 0 && unit != "none" {
			decimals = -1
		}
		words, err := format(unit, decimals, tick.Value)
		if err != nil {
			return nil, err
		}
		tick.Label = words
		ticks = append(ticks, tick)
	}
	return ticks, nil
}

func drawPiece(c *canvas, l layer, with color.NRGBA, custom dashboards.Custom, x func(time.Time) float64, y func(float64) float64) {
	var line []float64
	var polygon []vg.Point
	for i := range l.at {
		line = append(line, x(l.at[i]), y(l.to[i]))
		polygon = append(polygon, c.point(x(l.at[i]), y(l.to[i])))
	}
	if len(l.at) == 1 {
		c.fill(box{line[0] - 1, line[1] - 1, 2, 2}, with)
		return
	}
	for i := range slices.Backward(l.at) {
		polygon = append(polygon, c.point(x(l.at[i]), y(l.from[i])))
	}
	if custom.FillOpacity > 0 {
		c.draw.FillPolygon(faded(with, custom.FillOpacity/100), polygon)
	}
	if custom.LineWidth > 0 {
		c.line(with, 1.3*custom.LineWidth, line...)
	}
}

// drawLegend writes the series' names with what they were.
func drawLegend(c *canvas, at box, row float64, panel dashboards.Panel, all []dashboards.Series, colors []color.NRGBA, listed int) error {
	const column = 72.0
	calcs := panel.Options.Legend.Calcs
	head, name := style{size: 10, color: faint}, style{size: 10.5}
	for i, calc := range calcs {
		words, ok := map[string]string{"mean": "Mean", "max": "Max", "lastNotNull": "Last"}[calc]
		if !ok {
			return fmt.Errorf("the legend's %q is not drawn", calc)
		}
		c.write(head, at.x+at.w-column*float64(len(calcs)-i)+column-head.width(words), at.y+row/2, words)
	}
	if len(all) > listed {
		c.write(head, at.x, at.y+row/2, fmt.Sprintf("%d of %d series", listed, len(all)))
	}
	for i, s := range all[:listed] {
		y := at.y + row*float64(i+1) + row/2
		c.fill(box{at.x, y - 2, 12, 4}, colors[i])
		c.write(name, at.x+17, y, name.fit(s.Name, at.w-column*float64(len(calcs))-20))
		for n, calc := range calcs {
			v := s.Last()
			switch calc {
			case "mean":
				v = 0
				for _, p := range s.Points {
					v += p.Value / float64(len(s.Points))
				}
			case "max":
				for _, p := range s.Points {
					v = max(v, p.Value)
				}
			}
			words, err := format(panel.FieldConfig.Defaults.Unit, decimalsOf(panel.FieldConfig.Defaults), v)
			if err != nil {
				return err
			}
			c.write(name, at.x+at.w-column*float64(len(calcs)-n)+column-name.width(words), y, words)
		}
	}
	return nil
}
