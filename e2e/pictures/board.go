package main

import (
	"context"
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
)

// Lengths of the page.
const (
	pageWidth  = 1560.0
	margin     = 12.0
	headHeight = 74.0
	// cell is the height of a unit of Grafana's grid.
	cell = 37.0
	gap  = 6.0
	// titled is what a panel's title takes.
	titled = 26.0
)

// disclaimer stands on every picture.
const disclaimer = "Drawn by e2e/pictures, not by Grafana. SIMULATED: workloads by mlgen, GPUs from a recording of made-up values (nvidia.gpu.source=replay)."

// drawBoard asks what a dashboard asks and draws it into a file.
func drawBoard(ctx context.Context, from source, board dashboards.Dashboard, path string) error {
	rows := 0
	for _, panel := range board.Panels {
		rows = max(rows, panel.GridPos.Y+panel.GridPos.H)
	}
	c := newCanvas(pageWidth, headHeight+float64(rows)*cell+margin)
	drawHead(c, from, board)
	for _, panel := range board.Panels {
		unit := (pageWidth - 2*margin) / 24
		at := box{
			x: margin + float64(panel.GridPos.X)*unit, y: headHeight + float64(panel.GridPos.Y)*cell,
			w: float64(panel.GridPos.W)*unit - gap, h: float64(panel.GridPos.H)*cell - gap,
		}
		if err := drawPanel(ctx, c, at, from, board, panel); err != nil {
			return fmt.Errorf("%s: %w", panel.Title, err)
		}
	}
	return c.save(path)
}

// drawHead draws the title, what is chosen, and what this is.
func drawHead(c *canvas, from source, board dashboards.Dashboard) {
	c.write(style{size: 19, bold: true}, margin+2, 18, board.Title)
	x := margin + 2 + style{size: 19, bold: true}.width(board.Title) + 24
	small := style{size: 11.5, color: faint}
	for _, variable := range board.Templating.List {
		words := variable.Name + ": All"
		w := small.width(words) + 16
		c.fill(box{x, 8, w, 21}, paper)
		c.frame(box{x, 8, w, 21}, edge)
		c.write(small, x+8, 18.5, words)
		x += w + 8
	}
	when := fmt.Sprintf("%s to %s UTC", from.view.Start.UTC().Format("2006-01-02 15:04"), from.view.End.UTC().Format("15:04"))
	c.write(small, pageWidth-margin-small.width(when), 18.5, when)
	c.fill(box{margin, 36, pageWidth - 2*margin - gap, 26}, banner)
	c.write(style{size: 12.5, bold: true}, margin+10, 49, disclaimer)
}

// drawPanel draws one panel, or the title of a row.
func drawPanel(ctx context.Context, c *canvas, at box, from source, board dashboards.Dashboard, panel dashboards.Panel) error {
	if panel.Type == "row" {
		c.write(style{size: 14, bold: true}, at.x+2, at.y+at.h/2+2, panel.Title)
		return nil
	}
	c.fill(at, paper)
	c.frame(at, edge)
	heading := style{size: 12, bold: true}
	c.write(heading, at.x+9, at.y+titled/2+1, heading.fit(panel.Title, at.w-18))
	inner := box{at.x + 9, at.y + titled, at.w - 18, at.h - titled - 7}

	if panel.Type == "text" {
		return drawText(c, inner, panel.Options.Content)
	}
	if panel.Type == "table" {
		columns, lines, err := dashboards.Table(ctx, from.api, board, panel, from.view)
		if err != nil {
			return err
		}
		return drawTable(c, inner, panel, columns, lines)
	}
	var all []dashboards.Series
	for _, target := range panel.Targets {
		found, err := dashboards.Ask(ctx, from.api, board, target, from.view)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	all = withValues(all)
	switch panel.Type {
	case "stat":
		return drawStat(c, inner, panel, all)
	case "timeseries":
		return drawGraph(c, inner, panel, all, from.view)
	case "bargauge":
		return drawBars(c, inner, panel, all)
	case "state-timeline":
		return drawStates(c, inner, panel, all, from.view)
	}
	return fmt.Errorf("panels of type %q are not drawn", panel.Type)
}
