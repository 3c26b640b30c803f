package detect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
)

// maxNamed limits the ranks, hosts and GPUs that evidence names.
const maxNamed = 4

// rankOn names a rank with its host.
func rankOn(rank, host string) string {
	name := "rank " + rank
	if rank == "" {
		name = "the process"
	}
	if host == "" {
		return name
	}
	return name + " (" + host + ")"
}

// nameOf names a rank with its host.
func nameOf(rank *runs.Rank) string { return rankOn(rank.Name, rank.Host) }

// clock returns a time of day.
func clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// quantity returns a number with a noun.
func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// listed returns the first values as text.
func listed[T any](all []T) string {
	names := make([]string, 0, maxNamed+1)
	for _, one := range all[:min(len(all), maxNamed)] {
		names = append(names, fmt.Sprint(one))
	}
	if len(all) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// gib returns bytes as text.
func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }
