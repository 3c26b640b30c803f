// Command scale measures what a span, a point, a run and a connection cost the
// collectors of a fleet, and how many series they make, with the shipped configurations of an
// agent and a gateway. With -update it writes the tables of docs/evidence/scale.md.
//
// Nothing is asserted about the values.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/e2e/bench/growth"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often times are measured; the median counts")
	update := flag.Bool("update", false, "write the tables of docs/evidence/scale.md")
	flag.Parse()
	os.Exit(harness.RunProgram(func(s *harness.Suite) {
		costs := measure(s, *rounds)
		fmt.Print(costs.Table(), "\n", growth.Computed(costs))
		if *update {
			if err := growth.Write(harness.Path("docs", "evidence", "scale.md"), costs); err != nil {
				s.Fatal(err)
			}
		}
	}))
}

func measure(tb testing.TB, rounds int) growth.Costs {
	var costs growth.Costs
	times(tb, rounds, &costs)
	queue(tb, &costs)
	readings(tb, &costs)
	memory(tb, &costs)
	return costs
}

// median returns the middle one of some values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
