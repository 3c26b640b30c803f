package gpujoin

// match finds the run of each workload and process of a request.
func (r *request) match() {
	asked := make([]lookup, 0, 4*len(r.workloads))
	for i := range r.workloads {
		asked = r.workloads[i].ask(asked, &r.gpus[r.workloads[i].gpu])
	}
	r.index.look(asked)
	holders := make(map[location]holder)
	for i := range r.workloads {
		r.workloads[i].hold(asked, holders)
	}
	for i := range r.workloads {
		w := &r.workloads[i]
		w.alone = r.gpus[w.gpu].workloads == 1
		w.match(asked, holders)
		w.keep(asked)
	}
	r.index.keep(asked)
}

// keep notes in the lookups which runs the workload holds a GPU of: those that its process,
// container or pod is of.
func (w *workload) keep(asked []lookup) {
	keep := func(run string, of interval) {
		for i := of.first; i < of.end; i++ {
			asked[i].held = run
		}
	}
	if w.join.ok && (w.join.rule == ruleContainer || w.join.rule == rulePod) {
		keep(w.join.run, w.asked[w.join.rule])
	}
	for i, own := range w.ownJoins {
		if own.ok {
			keep(own.run, w.askedOf[i])
		}
	}
}

// interval is a part of a list of lookups.
type interval struct{ first, end int }

func (i interval) of(asked []lookup) []lookup { return asked[i.first:i.end] }

// ask adds the locations at which a workload's run may be.
func (w *workload) ask(asked []lookup, of *gpu) []lookup {
	add := func(at location) { asked = append(asked, lookup{at: at, gpu: of.id}) }
	for _, p := range w.processes {
		own := interval{first: len(asked)}
		if p.pid != 0 && p.start != 0 {
			for _, slack := range [...]int64{0, -startSlack, startSlack} {
				add(processLocation(w.host, processID{pid: p.pid, own: p.own, start: p.start + slack}))
			}
		}
		if p.own != 0 && w.traits[traitContainer] != 0 {
			add(containedLocation(w.traits[traitContainer], p.own))
		}
		own.end = len(asked)
		w.askedOf = append(w.askedOf, own)
	}
	put := func(locations ...location) {
		w.asked[locations[0].rule] = interval{len(asked), len(asked) + len(locations)}
		for _, at := range locations {
			add(at)
		}
	}
	if of.uuid != 0 {
		put(gpuLocation(of.uuid))
	}
	if at, ok := rankLocation(w.host, w.rank, w.world); ok {
		put(at)
	}
	for _, t := range locatedTraits {
		id := w.traits[t.trait]
		switch {
		case id == 0:
		case t.onHost:
			put(t.location(w.host, id), t.location(0, id))
		default:
			put(t.location(0, id))
		}
	}
	if w.traits[traitService] != 0 {
		put(location{rule: ruleService, host: w.host, id: w.traits[traitService]})
	}
	if w.gpuIndex.ok {
		put(location{rule: ruleIndex, host: w.host, numbers: [3]int64{w.gpuIndex.n}})
		put(location{rule: anyOnHost, host: w.host})
	}
	return asked
}

// holder is the process at a location of a process.
type holder struct {
	pid int64
	// many is true if there are several, with pids of different namespaces.
	many bool
}

// hold notes which processes are at locations of processes.
func (w *workload) hold(asked []lookup, holders map[location]holder) {
	for i, p := range w.processes {
		for _, a := range w.askedOf[i].of(asked) {
			if len(a.candidates) == 0 {
				continue
			}
			h, ok := holders[a.at]
			if !ok {
				h.pid = p.pid
			}
			h.many = h.many || h.pid != p.pid
			holders[a.at] = h
		}
	}
}

// match finds the run of the workload and of each of its processes.
func (w *workload) match(asked []lookup, holders map[location]holder) {
	var at [ruleCount]candidates
	var manyGPUs [ruleCount]bool
	for r := ruleGPU; r < ruleCount; r++ {
		for i, a := range w.asked[r].of(asked) {
			if len(at[r].list) > 0 {
				break
			}
			if i > 0 {
				forgetProcesses(a.candidates)
			}
			at[r], manyGPUs[r] = candidates{list: a.candidates}, a.manyGPUs
		}
	}
	at[ruleGPU].ambiguous = !w.alone
	at[ruleRank].ambiguous = manyGPUs[ruleRank]
	for _, a := range w.asked[anyOnHost].of(asked) {
		at[ruleIndex].ambiguous = len(a.candidates) != 1
	}
	at[ruleProcess], manyGPUs[ruleProcess] = w.matchProcesses(asked, holders)
	if c, r, ok := match(&w.evidence, &at); ok {
		w.join = join{candidate: c, rule: r, ok: true, manyGPUs: manyGPUs[r]}
	}
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
func (w *workload) matchProcesses(asked []lookup, holders map[location]holder) (all candidates, manyGPUs bool) {
	w.ownJoins = make([]join, len(w.processes))
	for i, p := range w.processes {
		one := evidence{run: w.run, traits: w.traits, processes: []processID{p}}
		var at [ruleCount]candidates
		many := false
		for _, a := range w.askedOf[i].of(asked) {
			for _, c := range a.candidates {
				if !hasRun(at[ruleProcess].list, c.run) {
					at[ruleProcess].list = append(at[ruleProcess].list, c)
				}
			}
			at[ruleProcess].ambiguous = at[ruleProcess].ambiguous || holders[a.at].many
			many = many || a.manyGPUs
		}
		c, r, ok := match(&one, &at)
		if !ok {
			all.ambiguous = true
			continue
		}
		w.ownJoins[i] = join{candidate: c, rule: r, ok: true, manyGPUs: many}
		manyGPUs = manyGPUs || many
		if !hasRun(all.list, c.run) {
			all.list = append(all.list, c)
			continue
		}
		for k := range all.list {
			if known := &all.list[k]; known.run == c.run && known.process != c.process {
				known.alone = false
			}
		}
	}
	return all, manyGPUs
}
