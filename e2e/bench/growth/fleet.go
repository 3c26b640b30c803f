package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// What is assumed of a machine and its runs. The page says so too.
const (
	// gpusOfMachine is also the number of its ranks.
	gpusOfMachine = 8
	// spansOfStep are sent by each rank for a step, stepsPerSecond often.
	spansOfStep, stepsPerSecond = 5, 1
	// readingInterval is that of the agents' GPU receiver, and scrapeInterval that of
	// Prometheus, in seconds.
	readingInterval, scrapeInterval = 10, 15
	// machinesOfRun share a run.
	machinesOfRun = 4
	// requestsPerSecond are made by an agent for its spans: a batch waits for one
	// second, and a machine has one run.
	requestsPerSecond = 1
)

// What a gateway may use, and the limits that it is shipped with.
const (
	// gatewayCores are those of a gateway, of which it uses load: the rest is for the
	// time after another gateway has failed.
	gatewayCores, load = 4, 0.5
	// admittedInstances is the limit of ml_guard for instances of services: a rank is
	// one. admittedCombinations is that for their labels: the spans of a step differ in
	// them. admittedStreams is that for streams of points.
	admittedInstances, admittedCombinations, admittedStreams = 1000, 5000, 100_000
	// maxRuns and maxSeries are those of ml_metrics.
	maxRuns, maxSeries = 200, 100_000
	// prometheusSeries is what one Prometheus is given here.
	prometheusSeries = 10_000_000
)

// need is a reason for a number of gateways.
type need struct {
	reason   string
	gateways float64
}

// Fleet is what a number of machines needs.
type Fleet struct {
	Machines, Runs  float64
	Spans, Points   float64
	AgentCores      float64
	GatewayCores    float64
	Gateways        float64
	Reason          string
	GatewayMiB      float64
	Wire, QueueHour float64
	Series, Samples float64
}

// needs returns the reasons for gateways: the processor, and each limit with the
// number of machines that it leaves to one gateway.
func needs(c Costs, f Fleet) []need {
	ranks := gpusOfMachine * f.Machines
	return []need{
		{"processor", f.GatewayCores / (gatewayCores * load)},
		{"`instance` of `ml_guard`", ranks / admittedInstances},
		{"`combination` of `ml_guard`", ranks * spansOfStep / admittedCombinations},
		{"`stream` of `ml_guard`", ranks * c.PointsGPU / admittedStreams},
		{"`max_runs` of `ml_metrics`", f.Runs / maxRuns},
		{"`max_series` of `ml_metrics`", (ranks*c.SeriesRank + f.Runs*c.SeriesRun) / maxSeries},
	}
}

// Grow returns what a number of machines needs.
func Grow(c Costs, machines float64) Fleet {
	ranks := gpusOfMachine * machines
	f := Fleet{
		Machines: machines,
		Runs:     math.Ceil(machines / machinesOfRun),
		Spans:    ranks * spansOfStep * stepsPerSecond,
		Points:   ranks * c.PointsGPU / readingInterval,
	}
	f.AgentCores = (f.Spans*c.AgentSpan + f.Points*c.AgentPoint) / 1e6 / machines
	requests := machines * (requestsPerSecond + 1./readingInterval)
	f.GatewayCores = (f.Spans*c.GatewaySpan + f.Points*c.GatewayPoint + requests*c.GatewayRequest) / 1e6
	for _, n := range needs(c, f) {
		if n.gateways > f.Gateways {
			f.Gateways, f.Reason = n.gateways, n.reason
		}
	}
	// One may fail.
	f.Gateways = math.Ceil(f.Gateways) + 1
	f.GatewayMiB = c.GatewayBase + ranks*c.GatewayRank/(f.Gateways-1) + machines*c.GatewayAgent/1024
	f.Wire = (f.Spans*c.WireSpan + f.Points*c.WirePoint) / 1e6
	f.QueueHour = 3600 * (f.Spans*c.QueueSpan + f.Points*c.QueuePoint) / machines / (1 << 20)
	f.Series = ranks*(c.SeriesRank+c.SeriesGPU) + f.Runs*c.SeriesRun
	f.Samples = f.Series / scrapeInterval
	return f
}

// sizes are those of the table, in machines.
var sizes = []float64{10, 100, 1000, 10_000}

// lines are those of the table, in which each fleet is a column.
var lines = []struct {
	text  string
	value func(Fleet) string
}{
	{"runs", func(f Fleet) string { return whole(f.Runs) }},
	{"spans a second", func(f Fleet) string { return whole(f.Spans) }},
	{"points of metrics a second", func(f Fleet) string { return whole(f.Points) }},
	{"an agent: cores", func(f Fleet) string { return short(f.AgentCores) }},
	{"an agent: MiB of queue for an hour without gateways", func(f Fleet) string { return whole(f.QueueHour) }},
	{"all agents to gateways: MB a second", func(f Fleet) string { return short(f.Wire) }},
	{"all gateways: cores", func(f Fleet) string { return short(f.GatewayCores) }},
	{"gateways, one of them to spare", func(f Fleet) string { return whole(f.Gateways) }},
	{"what decides this number", func(f Fleet) string { return f.Reason }},
	{"a gateway: MiB of memory", func(f Fleet) string { return whole(f.GatewayMiB) }},
	{"a gateway: connections", func(f Fleet) string { return whole(f.Machines) }},
	{"Prometheus: series", func(f Fleet) string { return whole(f.Series) }},
	{"Prometheus: samples a second", func(f Fleet) string { return whole(f.Samples) }},
}

// Table returns what fleets need as a table of Markdown.
func Table(c Costs) string {
	var fleets []Fleet
	head := []string{"machines"}
	for _, machines := range sizes {
		fleets = append(fleets, Grow(c, machines))
		head = append(head, whole(machines))
	}
	var table strings.Builder
	table.WriteString(row(head...) + "|---" + strings.Repeat("|---", len(sizes)) + "|\n")
	for _, line := range lines {
		cells := []string{line.text}
		for _, f := range fleets {
			cells = append(cells, line.value(f))
		}
		table.WriteString(row(cells...))
	}
	return table.String()
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// Limits returns how many machines each limit allows, the lowest first.
func Limits(c Costs) string {
	const machines = 1000
	f := Grow(c, machines)
	type limit struct {
		text     string
		machines float64
	}
	var limits []limit
	for _, n := range needs(c, f) {
		limits = append(limits, limit{"a gateway: " + n.reason, machines / n.gateways})
	}
	limits = append(limits, limit{"one Prometheus of " + whole(prometheusSeries) + " series", machines * prometheusSeries / f.Series})
	slices.SortFunc(limits, func(a, b limit) int { return cmp.Compare(a.machines, b.machines) })
	var table strings.Builder
	table.WriteString("| limit | machines |\n|---|---|\n")
	for _, l := range limits {
		table.WriteString(row(l.text, whole(l.machines)))
	}
	return table.String()
}

// whole writes a number with three digits that count, and commas.
func whole(v float64) string {
	if v >= 1000 {
		unit := math.Pow(10, math.Floor(math.Log10(v))-2)
		v = math.Round(v/unit) * unit
	}
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), ",")
}

// short writes a number with two digits that count.
func short(v float64) string {
	if v >= 100 {
		return whole(v)
	}
	return fmt.Sprintf("%.2g", v)
}
