package gpujoin

import (
	"slices"
	"time"
)

// match finds the run of each workload and process of a request.
func (r *request) match() {
	ix := r.index
	now := ix.Lock()
	defer ix.Unlock()
	holders := make(map[location]holder)
	// The GPUs and processes of all come first, so that two that look alike know of each
	// other.
	for _, w := range r.workloads {
		w.alone = w.gpu.workloads == 1
		w.locate()
		for _, locations := range w.at {
			for _, at := range locations {
				ix.seeGPU(at, w.gpu.id, now)
			}
		}
		for k, p := range w.processes {
			for _, at := range w.atOf[k] {
				h, known := holders[at]
				holders[at] = holder{pid: p.pid, many: h.many || known && h.pid != p.pid}
			}
		}
	}
	for _, w := range r.workloads {
		w.match(ix, holders, now)
	}
	for _, w := range r.workloads {
		if w.join.ok && (w.join.rule == ruleContainer || w.join.rule == rulePod) {
			ix.keep(w.join.run, w.at[w.join.rule], now)
		}
		for k, own := range w.ownJoins {
			if own.ok {
				ix.keep(own.run, w.atOf[k], now)
			}
		}
	}
}

// locate finds the locations at which the workload's run may be.
func (w *workload) locate() {
	host := w.gpu.host
	for _, p := range w.processes {
		var own []location
		if p.pid != 0 && p.start != 0 {
			for _, slack := range [...]int64{0, -startSlack, startSlack} {
				own = append(own, processLocation(host, processID{pid: p.pid, own: p.own, start: p.start + slack}))
			}
		}
		if p.own != 0 && w.traits[traitContainer] != 0 {
			own = append(own, containedLocation(w.traits[traitContainer], p.own))
		}
		w.atOf = append(w.atOf, own)
	}
	w.at[ruleProcess] = slices.Concat(w.atOf...)
	put := func(locations ...location) { w.at[locations[0].rule] = locations }
	if w.gpu.uuid != 0 {
		put(gpuLocation(w.gpu.uuid))
	}
	if at, ok := rankLocation(host, w.rank, w.world); ok {
		put(at)
	}
	for _, t := range locatedTraits {
		id := w.traits[t.trait]
		switch {
		case id == 0:
		case t.onHost:
			put(t.location(host, id), t.location(0, id))
		default:
			put(t.location(0, id))
		}
	}
	if w.traits[traitService] != 0 {
		put(location{rule: ruleService, host: host, id: w.traits[traitService]})
	}
	if w.gpuIndex.ok {
		put(location{rule: ruleIndex, host: host, numbers: [3]int64{w.gpuIndex.n}})
		put(location{rule: anyOnHost, host: host})
	}
}

// holder is the process at a location of a process.
type holder struct {
	pid int64
	// many is true if there are several, with pids of different namespaces.
	many bool
}

// match finds the run of the workload and of each of its processes.
func (w *workload) match(ix *Index, holders map[location]holder, now time.Time) {
	var at [ruleCount]candidates
	for r := ruleGPU; r < ruleCount; r++ {
		for i, place := range w.at[r] {
			if len(at[r].list) > 0 {
				break
			}
			at[r].list, at[r].manyGPUs = ix.live(place, now)
			if i > 0 {
				forgetProcesses(at[r].list)
			}
		}
	}
	at[ruleGPU].ambiguous = !w.alone
	at[ruleRank].ambiguous = at[ruleRank].manyGPUs
	for _, place := range w.at[anyOnHost] {
		all, _ := ix.live(place, now)
		at[ruleIndex].ambiguous = len(all) != 1
	}
	at[ruleProcess] = w.matchProcesses(ix, holders, now)
	w.join = match(&w.evidence, &at)
}

// forgetProcesses keeps of candidates that may be on another host what is known
// of the run, and nothing of a process.
func forgetProcesses(list []candidate) {
	for i := range list {
		c := &list[i]
		c.alone, c.client, c.process, c.rank, c.memory = false, 0, processID{}, rank{}, allocatorSizes{}
	}
}

// matchProcesses finds the runs of the workload's processes one by one. If some
// have no run, it is ambiguous whether all belong to one.
func (w *workload) matchProcesses(ix *Index, holders map[location]holder, now time.Time) (all candidates) {
	for i, p := range w.processes {
		one := evidence{run: w.run, traits: w.traits, processes: []processID{p}}
		var at [ruleCount]candidates
		own := &at[ruleProcess]
		for _, place := range w.atOf[i] {
			list, many := ix.live(place, now)
			for _, c := range list {
				if !hasRun(own.list, c.run) {
					own.list = append(own.list, c)
				}
			}
			own.ambiguous = own.ambiguous || holders[place].many
			own.manyGPUs = own.manyGPUs || many
		}
		j := match(&one, &at)
		w.ownJoins = append(w.ownJoins, j)
		switch {
		case !j.ok:
			all.ambiguous = true
			continue
		case !hasRun(all.list, j.run):
			all.list = append(all.list, j.candidate)
		}
		all.manyGPUs = all.manyGPUs || j.manyGPUs
		for k := range all.list {
			if known := &all.list[k]; known.run == j.run && known.process != j.process {
				known.alone = false
			}
		}
	}
	return all
}
