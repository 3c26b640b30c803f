package scale

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// counters are the values of series that only grow, by their name and labels, those
// that name a collector left out.
type counters map[string]float64

// summed reports whether a metric is a counter that adds up over collectors. The time
// of a run and its attempts do not: each collector that has seen a rank has them.
func summed(metric string) bool {
	return strings.HasPrefix(metric, "ml_") && strings.HasSuffix(metric, "_total") &&
		metric != "ml_run_time_seconds_total" && metric != "ml_run_attempts_total"
}

// read adds what collectors show now at these addresses.
func (c counters) read(ctx context.Context, addresses ...string) error {
	for _, address := range addresses {
		samples, err := harness.Scrape(ctx, address)
		if err != nil {
			return err
		}
		c.add(samples)
	}
	return nil
}

// readEnded adds what Prometheus has read last of a gateway that is about to end, since it
// started.
func (c counters) readEnded(ctx context.Context, prometheus *harness.Prometheus, g *gateway) error {
	instance, life := at(gatewayIP(g.number), seriesPort), max(1, int(time.Since(g.started).Seconds()))
	samples, err := prometheus.Query(ctx, fmt.Sprintf(`last_over_time({__name__=~"ml_.+_total",instance=%q}[%ds])`, instance, life))
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("Prometheus has read nothing of %s", instance)
	}
	c.add(samples)
	return err
}

func (c counters) add(samples []harness.Sample) {
	for _, sample := range samples {
		if summed(sample.Labels["__name__"]) {
			c[key(sample.Labels)] += sample.Value
		}
	}
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
