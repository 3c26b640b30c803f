package detect

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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

// programOf names a run with its program.
func programOf(program *streams.Resource, run string) string { return program.Service + "/" + run }

// nameOf names a rank of a run with its host and its GPU.
func nameOf(r *runs.Run, rank *runs.Rank) string {
	name := rankOn(rank.Name, rank.Host)
	if g := gpuOf(r, rank); g != nil && g.Index != "" && rank.Host != "" {
		name = strings.TrimSuffix(name, ")") + ", GPU " + g.Index + ")"
	}
	return name
}

// gpuOf returns the GPU of a rank: the one that it holds by name, else if it is alone
// on its host, the only one there, or nil.
func gpuOf(r *runs.Run, rank *runs.Rank) (of *gpus.State) {
	nameless := 0
	for _, g := range r.GPUs.All {
		switch {
		case g.Host != rank.Host:
		case g.Rank == "":
			of, nameless = g, nameless+1
		case g.Rank == rank.Name:
			return g
		}
	}
	others := func(other *runs.Rank) bool { return other.Host == rank.Host && other.Name != rank.Name }
	if nameless != 1 || slices.ContainsFunc(r.Ranks, others) {
		return nil
	}
	return of
}

// present returns the ranks of a run that have not moved to another host.
func present(r *runs.Run) iter.Seq[*runs.Rank] {
	return func(yield func(*runs.Rank) bool) {
		for _, rank := range r.Ranks {
			if !rank.Moved && !yield(rank) {
				return
			}
		}
	}
}

// clock returns a time of day.
func clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// quantity returns a number with a noun.
func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// addMore adds evidence of n things more than it names, if there are any: form takes their number
// with the noun.
func addMore(p *problem.Problem, n int, form, one, many string) {
	if n > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf(form, quantity(n, one, many)))
	}
}

// listed returns the first values as text.
func listed[T any](all []T) string {
	names := mlattr.Mapped(all[:min(len(all), maxNamed)], func(one T) string { return fmt.Sprint(one) })
	if len(all) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// gib returns bytes as text.
func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }
