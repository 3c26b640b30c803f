package detect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/links"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
)

// faultsBefore and faultsAfter limit when faults begin that say why a run hangs or is slow:
// errors that its links always have do not. A file system may be gone for long until the run
// needs it.
const faultsBefore, faultsAfter = 15 * time.Minute, 5 * time.Minute

// faultEvidence says which links of the run's hosts count errors since about the onset of its
// problem, and which file systems do not answer.
func faultEvidence(p *problem.Problem, s *State, r *runs.Run) {
	hosts := make(map[string]bool)
	for rank := range present(r) {
		hosts[rank.Host] = true
	}
	held := make(map[gpus.Key]bool)
	for _, g := range r.GPUs.All {
		hosts[g.Host], held[g.Key] = true, true
	}
	var evidence []string
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		var of links.Key // that the newest line is about
		for _, f := range s.GPUs.Faults[host] {
			since := f.Since.Sub(p.Onset)
			if since > faultsAfter || since < -faultsBefore && f.What != links.Mount || f.What == links.NVLink && !held[gpus.Key{Host: host, ID: f.ID}] {
				continue
			}
			count := fmt.Sprintf("%.0f %s", f.Number, f.Kind)
			switch {
			case f.What == links.Mount:
				evidence = append(evidence, fmt.Sprintf("the file system %s of %s has not answered since %s", f.ID, host, clock(f.Since)))
			case of.What == f.What && of.ID == f.ID:
				evidence[len(evidence)-1] += ", " + count
			default:
				evidence = append(evidence, fmt.Sprintf("%s %s of %s counts errors since %s: %s", f.What, f.ID, host, clock(f.Since), count))
			}
			of = f.Key
		}
	}
	p.Evidence = append(p.Evidence, evidence[:min(len(evidence), maxNamed)]...)
	addMore(p, len(evidence)-maxNamed, "and %s", "other link or file system", "others")
}
