package model

// MakeLists makes the lists that are nil and that JSON must have, so that they
// are [] there and not null. The State must not be in use yet.
func (s *State) MakeLists() {
	makeList(&s.Needs)
	makeList(&s.Resolved)
	makeList(&s.Runs)
	makeList(&s.GPUs)
	makeList(&s.Failures)
	makeList(&s.Calls)
	makeList(&s.Pools)
	makeList(&s.Models)
	makeList(&s.Changes)
	makeList(&s.Missing)
	makeList(&s.Collectors)
	if s.Collector.GPUs == nil {
		s.Collector.GPUs = map[string]int{}
	}
	makeListsOfNeeds(s.Needs)
	makeListsOfNeeds(s.Resolved)
	for i := range s.GPUs {
		makeList(&s.GPUs[i].Holders)
	}
}

// MakeLists does for a RunDetail what it does for a State.
func (d *RunDetail) MakeLists() {
	makeList(&d.Needs)
	makeList(&d.Ranks)
	makeList(&d.Settings)
	makeList(&d.Changes)
	makeList(&d.Phases)
	makeList(&d.Curves)
	makeList(&d.Marks)
	makeList(&d.Calls)
	makeList(&d.Failures)
	makeList(&d.Traces)
	makeListsOfNeeds(d.Needs)
	for i := range d.Curves {
		makeList(&d.Curves[i].Times)
		makeList(&d.Curves[i].Values)
	}
	for i := range d.Traces {
		makeList(&d.Traces[i].Spans)
	}
}

func makeListsOfNeeds(needs []Need) {
	for i := range needs {
		makeList(&needs[i].Evidence)
		makeList(&needs[i].Before)
	}
}

// trueFirst orders rows of which something is true before others.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func makeList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
