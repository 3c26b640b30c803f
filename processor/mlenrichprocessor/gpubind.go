package mlenrichprocessor

// bind finds the run of each workload and process.
func (e *enricher) bind(j *gpuJoin) {
	asked := make([]placeLookup, 0, 4*len(j.tenants))
	for i := range j.tenants {
		asked = j.tenants[i].ask(asked, j.gpus[j.tenants[i].gpu].id)
	}
	e.store.lookAround(asked)
	holders := make(map[place]holder)
	for i := range j.tenants {
		j.tenants[i].hold(asked, holders)
	}
	for i := range j.tenants {
		t := &j.tenants[i]
		t.alone = j.gpus[t.gpu].tenants == 1
		t.climb(asked, holders)
	}
}

// ask adds the places at which a workload's run may be.
func (t *tenant) ask(asked []placeLookup, gpu uint64) []placeLookup {
	add := func(p place) { asked = append(asked, placeLookup{place: p, gpu: gpu}) }
	for _, p := range t.processes {
		own := span{first: len(asked)}
		if p.pid != 0 && p.start != 0 {
			for _, slack := range [...]int64{0, -startSlack, startSlack} {
				add(processPlace(t.host, processID{pid: p.pid, own: p.own, start: p.start + slack}))
			}
		}
		if p.own != 0 && t.says[traitContainer] != 0 {
			add(containedPlace(t.says[traitContainer], p.own))
		}
		own.end = len(asked)
		t.owned = append(t.owned, own)
	}
	put := func(places ...place) {
		t.asked[places[0].rung] = span{len(asked), len(asked) + len(places)}
		for _, p := range places {
			add(p)
		}
	}
	if p, ok := rankPlace(t.host, t.rank, t.world); ok {
		put(p)
	}
	for _, at := range placedTraits {
		id := t.says[at.trait]
		switch {
		case id == 0:
		case at.onHost:
			put(at.place(t.host, id), at.place(0, id))
		default:
			put(at.place(0, id))
		}
	}
	if t.says[traitService] != 0 {
		put(place{rung: rungService, host: t.host, id: t.says[traitService]})
	}
	if t.index.ok {
		put(place{rung: rungIndex, host: t.host, numbers: [3]int64{t.index.n}})
		put(place{rung: ofHost, host: t.host})
	}
	return asked
}

// holder is the process that is at the place of one.
type holder struct {
	pid int64
	// many is true where there is another: the numbers of two namespaces.
	many bool
}

// hold notes which processes are at places of processes.
func (t *tenant) hold(asked []placeLookup, holders map[place]holder) {
	for i, p := range t.processes {
		for _, a := range asked[t.owned[i].first:t.owned[i].end] {
			if len(a.claimants) == 0 {
				continue
			}
			h, ok := holders[a.place]
			if !ok {
				h.pid = p.pid
			}
			h.many = h.many || h.pid != p.pid
			holders[a.place] = h
		}
	}
}

// climb finds the run of the workload and of each of its processes.
func (t *tenant) climb(asked []placeLookup, holders map[place]holder) {
	var at [rungCount]found
	gpus := [rungCount]bool{}
	for r := rungRank; r < rungCount; r++ {
		for i, a := range asked[t.asked[r].first:t.asked[r].end] {
			if len(at[r].claimants) > 0 {
				break
			}
			if i > 0 {
				asElsewhere(a.claimants)
			}
			at[r], gpus[r] = found{claimants: a.claimants}, a.manyGPUs
		}
	}
	at[rungRank].doubtful = gpus[rungRank]
	for _, a := range asked[t.asked[ofHost].first:t.asked[ofHost].end] {
		at[rungIndex].doubtful = len(a.claimants) != 1
	}
	at[rungProcess], gpus[rungProcess] = t.climbProcesses(asked, holders)
	if c, r, ok := climb(&t.evidence, &at); ok {
		t.binding = binding{claimant: c, rung: r, bound: true, manyGPUs: gpus[r]}
	}
}

// asElsewhere leaves of claimants that may be on another host what is known of
// the run, and nothing of a process.
func asElsewhere(claimants []claimant) {
	for i := range claimants {
		c := &claimants[i]
		c.alone, c.client, c.process, c.rank, c.memory = false, 0, processID{}, rankNumbers{}, clientMemory{}
	}
}

// climbProcesses finds the runs of the workload's processes by themselves. Where
// some of them are none's, it is in doubt that all are of one.
func (t *tenant) climbProcesses(asked []placeLookup, holders map[place]holder) (all found, manyGPUs bool) {
	t.ownBindings = make([]binding, len(t.processes))
	for i, p := range t.processes {
		one := evidence{run: t.run, says: t.says, processes: []processID{p}}
		var at [rungCount]found
		many := false
		for _, a := range asked[t.owned[i].first:t.owned[i].end] {
			for _, c := range a.claimants {
				if !claims(at[rungProcess].claimants, c.run) {
					at[rungProcess].claimants = append(at[rungProcess].claimants, c)
				}
			}
			at[rungProcess].doubtful = at[rungProcess].doubtful || holders[a.place].many
			many = many || a.manyGPUs
		}
		c, r, ok := climb(&one, &at)
		if !ok {
			all.doubtful = true
			continue
		}
		t.ownBindings[i] = binding{claimant: c, rung: r, bound: true, manyGPUs: many}
		manyGPUs = manyGPUs || many
		if !claims(all.claimants, c.run) {
			all.claimants = append(all.claimants, c)
			continue
		}
		for k := range all.claimants {
			if known := &all.claimants[k]; known.run == c.run && known.process != c.process {
				known.alone = false
			}
		}
	}
	return all, manyGPUs
}
