package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
)

// nothing says that there is no value.
func nothing(c *canvas, at box, panel dashboards.Panel) {
	words := panel.FieldConfig.Defaults.NoValue
	if words == "" {
		words = "No data"
	}
	s := style{size: 13, color: faint}
	c.write(s, at.x+at.w/2-s.width(words)/2, at.y+at.h/2, words)
}

// drawStat draws one figure and its past below it.
func drawStat(c *canvas, at box, panel dashboards.Panel, all []dashboards.Series) error {
	if len(all) == 0 {
		nothing(c, at, panel)
		return nil
	}
	if len(all) > 1 {
		return fmt.Errorf("one figure of %d series", len(all))
	}
	field := panel.FieldConfig.Defaults
	words, with, err := shownAs(field, all[0].Last())
	if err != nil {
		return err
	}
	middle := at.y + at.h/2 - 2
	if panel.Options.GraphMode == "area" {
		middle = at.y + at.h*0.36
		lower := box{at.x - 8, at.y + at.h*0.66, at.w + 16, at.h*0.34 + 6}
		least, most := math.Inf(1), math.Inf(-1)
		for _, p := range all[0].Points {
			least, most = min(least, p.Value), max(most, p.Value)
		}
		if most == least {
			least, most = least-1, most+1
		}
		first, last := all[0].Points[0].At, all[0].Points[len(all[0].Points)-1].At
		if span := last.Sub(first); span > 0 {
			area := []vg.Point{c.point(lower.x, lower.y+lower.h)}
			var line []float64
			for _, p := range all[0].Points {
				x := lower.x + lower.w*float64(p.At.Sub(first))/float64(span)
				y := lower.y + lower.h*(1-0.92*(p.Value-least)/(most-least)) - 1
				area = append(area, c.point(x, y))
				line = append(line, x, y)
			}
			area = append(area, c.point(lower.x+lower.w, lower.y+lower.h))
			c.draw.FillPolygon(faded(with, 0.13), area)
			c.line(faded(with, 0.7), 1, line...)
		}
	}
	s := style{size: 30, bold: true, color: with}
	for s.width(words) > at.w && s.size > 12 {
		s.size--
	}
	c.write(s, at.x+at.w/2-s.width(words)/2, middle, words)
	return nil
}

// drawBars draws the newest values side by side.
func drawBars(c *canvas, at box, panel dashboards.Panel, all []dashboards.Series) error {
	if len(all) == 0 {
		nothing(c, at, panel)
		return nil
	}
	most := 0.0
	for _, s := range all {
		most = max(most, s.Last())
	}
	if panel.FieldConfig.Defaults.Max != nil {
		most = *panel.FieldConfig.Defaults.Max
	}
	slices.SortStableFunc(all, func(a, b dashboards.Series) int { return -compare(a.Last(), b.Last()) })
	height := min(26, at.h/float64(len(all)))
	fits := len(all)
	if height < 16 {
		height = 16
		fits = int(at.h/height) - 1
	}
	name := style{size: 11}
	nameWidth, valueWidth := 0.0, 0.0
	texts := make([]string, len(all))
	for i, s := range all {
		words, _, err := shownAs(panel.FieldConfig.Defaults, s.Last())
		if err != nil {
			return err
		}
		texts[i] = words
		nameWidth = max(nameWidth, name.width(s.Name))
		valueWidth = max(valueWidth, style{size: 11.5, bold: true}.width(words))
	}
	nameWidth = min(nameWidth, at.w*0.55)
	for i, s := range all[:min(fits, len(all))] {
		y := at.y + float64(i)*height
		_, with, err := shownAs(panel.FieldConfig.Defaults, s.Last())
		if err != nil {
			return err
		}
		short := name.fit(s.Name, nameWidth)
		c.write(name, at.x+nameWidth-name.width(short), y+height/2, short)
		bar := box{at.x + nameWidth + 8, y + 3, at.w - nameWidth - valueWidth - 18, height - 6}
		c.fill(bar, rule)
		if most > 0 {
			c.fill(box{bar.x, bar.y, bar.w * min(1, s.Last()/most), bar.h}, with)
		}
		c.write(style{size: 11.5, bold: true, color: with}, at.x+at.w-valueWidth, y+height/2, texts[i])
	}
	if fits < len(all) {
		c.write(style{size: 10.5, color: faint}, at.x, at.y+at.h-6, fmt.Sprintf("and %d more", len(all)-fits))
	}
	return nil
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// drawStates draws a bar over time for each series, in the colours of states.
func drawStates(c *canvas, at box, panel dashboards.Panel, all []dashboards.Series, view dashboards.View) error {
	if len(all) == 0 {
		nothing(c, at, panel)
		return nil
	}
	name := style{size: 11}
	nameWidth := 0.0
	for _, s := range all {
		nameWidth = max(nameWidth, name.width(s.Name))
	}
	nameWidth = min(nameWidth, at.w*0.35)
	body := box{at.x + nameWidth + 8, at.y, at.w - nameWidth - 8, at.h - 40}
	height := min(30, body.h/float64(len(all)))
	fits := len(all)
	if height < 13 {
		height = 13
		fits = int(body.h / height)
	}
	x := func(t time.Time) float64 {
		return body.x + body.w*float64(t.Sub(view.Start))/float64(view.End.Sub(view.Start))
	}
	var used []string
	for i, s := range all[:fits] {
		y := body.y + float64(i)*height
		short := name.fit(s.Name, nameWidth)
		c.write(name, at.x+nameWidth-name.width(short), y+height/2, short)
		for _, piece := range spells(s, view) {
			words, with, err := shownAs(panel.FieldConfig.Defaults, piece.value)
			if err != nil {
				return err
			}
			if !slices.Contains(used, words) {
				used = append(used, words)
			}
			c.fill(box{x(piece.from), y + height*0.1, x(piece.until) - x(piece.from), height * 0.8}, faded(with, 0.85))
		}
	}
	drawTimes(c, body, body.y+float64(fits)*height, view)
	// Only the states that occur, as Grafana's legend has them.
	left := at.x
	for _, mapping := range panel.FieldConfig.Defaults.Mappings {
		var values []string
		for value := range mapping.Options {
			values = append(values, value)
		}
		slices.Sort(values)
		for _, value := range values {
			to := mapping.Options[value]
			if !slices.Contains(used, to.Text) {
				continue
			}
			with, err := colorNamed(to.Color)
			if err != nil {
				return err
			}
			c.fill(box{left, at.y + at.h - 9, 12, 4}, with)
			c.write(name, left+17, at.y+at.h-7, to.Text)
			left += 17 + name.width(to.Text) + 16
		}
	}
	if fits < len(all) {
		c.write(style{size: 10.5, color: faint}, left, at.y+at.h-7, fmt.Sprintf("and %d runs more", len(all)-fits))
	}
	return nil
}

// spell is a time in which a series had one value.
type spell struct {
	from, until time.Time
	value       float64
}

// spells joins equal values that follow each other.
func spells(s dashboards.Series, view dashboards.View) (all []spell) {
	for _, p := range s.Points {
		until := p.At.Add(view.Step)
		if until.After(view.End) {
			until = view.End
		}
		if n := len(all) - 1; n >= 0 && !p.At.After(all[n].until.Add(view.Step/2)) {
			all[n].until = p.At
			if all[n].value == p.Value {
				all[n].until = until
				continue
			}
		}
		all = append(all, spell{p.At, until, p.Value})
	}
	return all
}

// drawTimes writes the times below a graph.
func drawTimes(c *canvas, body box, y float64, view dashboards.View) {
	s := style{size: 10, color: faint}
	every := niceStep(view.End.Sub(view.Start), body.w/64)
	for t := view.Start.Truncate(every).Add(every); t.Before(view.End); t = t.Add(every) {
		x := body.x + body.w*float64(t.Sub(view.Start))/float64(view.End.Sub(view.Start))
		words := t.UTC().Format("15:04")
		if every < time.Minute {
			words = t.UTC().Format("15:04:05")
		}
		if x+s.width(words)/2 < body.x+body.w+4 && x-s.width(words)/2 > body.x-6 {
			c.write(s, x-s.width(words)/2, y+9, words)
		}
	}
}

func niceStep(span time.Duration, most float64) time.Duration {
	for _, every := range []time.Duration{
		10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
	} {
		if float64(span)/float64(every) <= max(1, most) {
			return every
		}
	}
	return 7 * 24 * time.Hour
}

// drawText draws the little Markdown that the dashboards have: paragraphs,
// numbered lines and blocks of code.
func drawText(c *canvas, at box, markdown string) error {
	y := at.y + 8
	code := false
	body, mono := style{size: 11.5}, style{size: 10.5, mono: true}
	for line := range strings.SplitSeq(markdown, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			y += 3
		case code:
			c.fill(box{at.x, y - 8, at.w, 16}, page)
			c.write(mono, at.x+6, y, mono.fit(line, at.w-12))
			y += 16
		case strings.TrimSpace(line) == "":
			y += 6
		default:
			indent := 0.0
			if len(line) > 2 && line[1] == '.' {
				indent = 16
			}
			for i, part := range body.wrap(strings.NewReplacer("**", "", "`", "").Replace(line), at.w-indent) {
				x := at.x
				if i > 0 {
					x += indent
				}
				c.write(body, x, y, part)
				y += 16
			}
		}
	}
	if y > at.y+at.h+10 {
		return fmt.Errorf("the text is %.0f higher than its panel", y-at.y-at.h)
	}
	return nil
}
