package scale

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// counters are the values of series that only grow, by their name and labels, those
// that name a collector left out.
type counters map[string]float64

// summed selects the counters that add up over collectors. The time of a run and its
// attempts do not: each collector that has seen a rank has them.
const summed = `__name__=~"ml_.+_total",__name__!~"ml_run_(time_seconds|attempts)_total"`

// read adds what Prometheus has of all collectors now.
func (c counters) read(ctx context.Context, prometheus *harness.Prometheus) error {
	return c.add(ctx, prometheus, "{"+summed+"}")
}

// readEnded adds what Prometheus has read last of a gateway that has ended.
func (c counters) readEnded(ctx context.Context, prometheus *harness.Prometheus, instance string) error {
	return c.add(ctx, prometheus, fmt.Sprintf(`last_over_time({%s,instance=%q}[10m])`, summed, instance))
}

func (c counters) add(ctx context.Context, prometheus *harness.Prometheus, expression string) error {
	samples, err := prometheus.Query(ctx, expression)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("nothing is counted in %s", expression)
	}
	for _, sample := range samples {
		c[key(sample.Labels)] += sample.Value
	}
	return err
}

func key(labels harness.Labels) string {
	var text strings.Builder
	text.WriteString(labels["__name__"])
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name != "__name__" && name != "instance" && name != "collector_instance_id" {
			fmt.Fprintf(&text, " %s=%s", name, labels[name])
		}
	}
	return text.String()
}

// name returns the metric of a key.
func name(key string) string {
	name, _, _ := strings.Cut(key, " ")
	return name
}

// minus returns the differences that are not zero.
func (c counters) minus(others counters) counters {
	differences := counters{}
	for of, value := range c {
		if d := value - others[of]; math.Abs(d) > 1e-6*math.Abs(value) {
			differences[of] = d
		}
	}
	for of, value := range others {
		if _, ok := c[of]; !ok && value != 0 {
			differences[of] = -value
		}
	}
	return differences
}

// sums adds up by metric: what is missing, what is too much, and the total.
func sums(differences, all counters) string {
	less, more, total := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for of, value := range all {
		total[name(of)] += value
	}
	for of, d := range differences {
		if d < 0 {
			less[name(of)] -= d
		} else {
			more[name(of)] += d
		}
	}
	var lines []string
	for _, metric := range slices.Sorted(maps.Keys(total)) {
		if less[metric] != 0 || more[metric] != 0 {
			lines = append(lines, fmt.Sprintf("%s: %.6g less, %.6g more, of %.6g", metric, less[metric], more[metric], total[metric]))
		}
	}
	return strings.Join(lines, "\n")
}
