package main

import (
	"cmp"
	"slices"
	"strconv"
)

// owners are the labels that name a workload without a run, the most
// informative first.
var owners = []struct{ label, kind string }{
	{"slurm_job_id", "slurm job"},
	{"k8s_pod_uid", "pod"},
	{"container_id", "container"},
	{"user_id", "user"},
}

// gpusOf returns the GPUs of a scrape with their workloads.
func gpusOf(latest *scrape) []gpu {
	type key struct{ id, host string }
	found := map[key]*gpu{}
	find := func(labels map[string]string) *gpu {
		k := key{labels[labelGPU], labels[labelHost]}
		if k.id == "" {
			return nil // a sensor of something else than a GPU
		}
		g := found[k]
		if g == nil {
			g = &gpu{id: k.id, host: k.host}
			found[k] = g
		}
		g.index = cmp.Or(g.index, labels[labelGPUIndex])
		g.source = cmp.Or(g.source, labels[labelGPUSource])
		return g
	}
	each := func(name string, use func(*gpu, sample)) {
		for _, series := range latest.sorted(name) {
			if g := find(series.labels); g != nil {
				use(g, series.sample)
			}
		}
	}
	each(seriesGPUInfo, func(*gpu, sample) {})
	each(seriesGPUUtil, func(g *gpu, s sample) {
		// Encoder and decoder have their own series.
		if task := s.labels[labelGPUTask]; task == "" || task == "general" {
			g.utilization = known(s.value)
		}
	})
	each(seriesGPUUsed, func(g *gpu, s sample) { g.memoryUsed = known(s.value) })
	each(seriesGPULimit, func(g *gpu, s sample) { g.memoryLimit = known(s.value) })
	each(seriesGPUPower, func(g *gpu, s sample) { g.power = known(s.value) })
	each(seriesGPUTemp, func(g *gpu, s sample) {
		if at := s.labels[labelSensor]; at == "" || at == "gpu" {
			g.temperature = known(s.value)
		}
	})
	services := serviceOfRun(latest)
	each(seriesWorkloads, func(g *gpu, s sample) {
		id := s.labels[labelRun]
		w := workload{
			run:     id,
			service: cmp.Or(s.labels["service_name"], services[id]),
			rank:    s.labels[labelRank],
			join:    s.labels[labelJoin],
			memory:  known(s.value),
		}
		for _, owner := range owners {
			if w.owner == "" && s.labels[owner.label] != "" {
				w.owner, w.ownerKind = s.labels[owner.label], owner.kind
			}
		}
		g.workloads = append(g.workloads, w)
	})

	gpus := make([]gpu, 0, len(found))
	for _, g := range found {
		slices.SortStableFunc(g.workloads, func(a, b workload) int {
			return cmp.Or(
				// Unknown workloads come last.
				-cmp.Compare(min(1, len(a.run)), min(1, len(b.run))), cmp.Compare(a.run, b.run), cmp.Compare(a.owner, b.owner),
				// Ranks are numbers: a shorter one is smaller.
				cmp.Compare(len(a.rank), len(b.rank)), cmp.Compare(a.rank, b.rank),
			)
		})
		gpus = append(gpus, *g)
	}
	slices.SortFunc(gpus, func(a, b gpu) int {
		return cmp.Or(
			cmp.Compare(a.host, b.host), cmp.Compare(indexOf(a), indexOf(b)), cmp.Compare(a.id, b.id),
		)
	})
	return gpus
}

// indexOf returns a GPU's index for sorting; a GPU without one comes last.
func indexOf(g gpu) int {
	index, err := strconv.Atoi(g.index)
	if err != nil {
		return 1 << 30
	}
	return index
}

// serviceOfRun maps runs to services, for runs with exactly one service.
func serviceOfRun(latest *scrape) map[string]string {
	services := map[string]string{}
	for _, name := range []string{seriesSteps, seriesBatches, seriesLoss, seriesTokens} {
		for _, series := range latest.sorted(name) {
			id, service := series.labels[labelRun], series.labels[labelService]
			if id == "" || service == "" {
				continue
			}
			if known, ok := services[id]; ok && known != service {
				service = ""
			}
			services[id] = service
		}
	}
	return services
}
