package growth

import (
	"fmt"
	"strconv"
	"strings"
)

// Costs are measured. Times are of a processor, in microseconds.
type Costs struct {
	// AgentSpan and AgentPoint are the times of an agent for a span and for a point.
	AgentSpan, AgentPoint float64
	// GatewaySpan and GatewayPoint are those of a gateway, in large requests, and
	// GatewayRequest what each request of an agent adds.
	GatewaySpan, GatewayPoint, GatewayRequest float64
	// WireSpan and WirePoint are the bytes between agent and gateway, compressed.
	WireSpan, WirePoint float64
	// QueueSpan and QueuePoint are the bytes on the disk of an agent while its
	// gateways are away.
	QueueSpan, QueuePoint float64
	// GatewayBase is the memory of a gateway without runs, in MiB. GatewayRank is
	// what each rank of a run with its GPU adds, GatewayTraces what 1,000 live traces
	// add, both in MiB, and GatewayAgent what the connection of an agent adds, in KiB.
	GatewayBase, GatewayRank, GatewayTraces, GatewayAgent float64
	// SeriesRank, SeriesRun and SeriesGPU are the series that a rank, a run besides
	// its ranks, and a GPU have in Prometheus.
	SeriesRank, SeriesRun, SeriesGPU float64
	// PointsGPU is the number of points of a GPU's reading.
	PointsGPU float64
}

// constant is a row of the table of costs.
type constant struct {
	text, unit string
	value      func(*Costs) *float64
}

var constants = []constant{
	{"agent, a span", "µs", func(c *Costs) *float64 { return &c.AgentSpan }},
	{"agent, a point of a metric", "µs", func(c *Costs) *float64 { return &c.AgentPoint }},
	{"gateway, a span", "µs", func(c *Costs) *float64 { return &c.GatewaySpan }},
	{"gateway, a point of a metric", "µs", func(c *Costs) *float64 { return &c.GatewayPoint }},
	{"gateway, each request in addition", "µs", func(c *Costs) *float64 { return &c.GatewayRequest }},
	{"agent to gateway, a span", "bytes", func(c *Costs) *float64 { return &c.WireSpan }},
	{"agent to gateway, a point", "bytes", func(c *Costs) *float64 { return &c.WirePoint }},
	{"agent's queue, a span", "bytes", func(c *Costs) *float64 { return &c.QueueSpan }},
	{"agent's queue, a point", "bytes", func(c *Costs) *float64 { return &c.QueuePoint }},
	{"gateway's memory without a run", "MiB", func(c *Costs) *float64 { return &c.GatewayBase }},
	{"gateway's memory, a rank with its GPU", "MiB", func(c *Costs) *float64 { return &c.GatewayRank }},
	{"gateway's memory, 1,000 live traces", "MiB", func(c *Costs) *float64 { return &c.GatewayTraces }},
	{"gateway's memory, an agent's connection", "KiB", func(c *Costs) *float64 { return &c.GatewayAgent }},
	{"series of a rank", "", func(c *Costs) *float64 { return &c.SeriesRank }},
	{"series of a run, besides its ranks", "", func(c *Costs) *float64 { return &c.SeriesRun }},
	{"series of a GPU that a run holds", "", func(c *Costs) *float64 { return &c.SeriesGPU }},
	{"points of a GPU's reading", "", func(c *Costs) *float64 { return &c.PointsGPU }},
}

// Table returns the costs as a table of Markdown.
func (c Costs) Table() string {
	var table strings.Builder
	table.WriteString("| what | measured | unit |\n|---|---|---|\n")
	for _, k := range constants {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", k.text, strconv.FormatFloat(*k.value(&c), 'g', 3, 64), k.unit)
	}
	return table.String()
}

// ParseCosts reads a table that Table has written.
func ParseCosts(table string) (Costs, error) {
	var c Costs
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != len(constants)+2 {
		return c, fmt.Errorf("the table of costs has %d rows, want %d", len(rows)-2, len(constants))
	}
	for i, k := range constants {
		cells := strings.Split(rows[i+2], "|")
		if len(cells) != 5 || strings.TrimSpace(cells[1]) != k.text {
			return c, fmt.Errorf("row %q is not about %q", rows[i+2], k.text)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(cells[2]), 64)
		if err != nil {
			return c, fmt.Errorf("row %q: %w", rows[i+2], err)
		}
		*k.value(&c) = value
	}
	return c, nil
}
