package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// addEvidence says what was observed of a problem, and what to do next. It
// composes what the model holds and decides nothing.
func (s *Store) addEvidence(state *State, n *Need, p *problem, now time.Time) {
	s.ownEvidence(state, n, p, now)
	if s.settings.Fleet && p.record != nil && len(p.record.Evidence) > 0 {
		n.takeEvidence(p.record)
	}
}

// ownEvidence says what the page itself has observed, or what the record of a problem
// says if the page has no words of its own for the kind.
func (s *Store) ownEvidence(state *State, n *Need, p *problem, now time.Time) {
	switch p.kind {
	case LooksHung:
		s.hungEvidence(n, p.run, now)
	case GPUFailed:
		s.failedGPUEvidence(n, p, now)
	case RestartLoop:
		s.restartEvidence(state, n, p, now)
	case Failing:
		s.failingEvidence(state, n, p, now)
	case Slow:
		s.slowEvidence(n, p.run, now)
	case HeldIdle:
		s.idleEvidence(n, p, now)
	default:
		n.recorded(p.record)
	}
}

func (n *Need) say(format string, a ...any) {
	n.Evidence = append(n.Evidence, fmt.Sprintf(format, a...))
}

// hungEvidence names the last step, the ranks that do something else than the
// others, the GPUs and the last checkpoint.
func (s *Store) hungEvidence(n *Need, r *run, now time.Time) {
	if r == nil {
		n.Next = "Look at the processes of the run with py-spy dump."
		return
	}
	var row Run
	r.addNumbers(&row, now)
	switch {
	case row.Steps != nil && *row.Steps > 0 && row.LastStep != nil:
		n.say("last step %s at %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64), clock(*row.LastStep, now))
	case row.Steps != nil && *row.Steps > 0:
		n.say("last step %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64))
	default:
		n.say("%s", noStep(r.processCount(), clock(n.Since, now)))
	}
	ranks, _ := r.rankRows()
	suspects := apart(ranks)
	s.rankEvidence(n, ranks, suspects, now)
	if len(ranks) == 0 {
		n.say("no rank is known: no span of the run has arrived")
	}
	if use := gpuUse(r); use != "" {
		n.say("%s", use)
	}
	if !r.checkpoint.IsZero() {
		n.say("last checkpoint at %s", clock(r.checkpoint, now))
	}
	n.Next, n.Command = r.inspect(ranks, suspects)
}

// inspect says which process of a run that looks hung to look at first, on which
// host, and with which command. Where its process id is unknown, the command lists
// those that hold its GPU.
func (r *run) inspect(ranks, suspects []Rank) (next, command string) {
	var first Rank
	switch {
	case len(suspects) > 0:
		first = suspects[0]
		next = "See what " + rankPlace(first) + " does: the others may wait for it. "
	case len(ranks) > 1:
		first = ranks[0]
		next = "See what each rank waits for, for example " + rankPlace(first) + ". "
	default:
		if len(ranks) > 0 {
			first = ranks[0]
		}
		next = "See what the process waits for. "
		if len(r.gpus) > 1 {
			next = "See what each process waits for, for example that of " + places([]*gpu{r.gpus[0].gpu}) + ". "
		}
	}
	if first.Host == "" && len(r.gpus) > 0 {
		first.Host, first.GPUIndex = r.gpus[0].gpu.host, r.gpus[0].gpu.index
	}
	host := "On " + cmp.Or(first.Host, "its host")
	if pid := r.pidOf(first.Rank); pid > 0 {
		return next + host + ":", "py-spy dump --pid " + strconv.FormatInt(pid, 10)
	}
	device := ""
	if index, err := strconv.ParseUint(first.GPUIndex, 10, 16); err == nil {
		device = " -i " + strconv.FormatUint(index, 10)
	}
	return next + host + ", find its process id, then run py-spy dump --pid PID:",
		"nvidia-smi" + device + " --query-compute-apps=pid,name,used_memory --format=csv"
}

// noStep says that ranks have taken no step since a time.
func noStep(ranks int, since string) string {
	if ranks < 2 {
		return "no step yet, waiting since " + since
	}
	return strconv.Itoa(ranks) + " ranks, none has taken a step yet, waiting since " + since
}

// pidOf returns the process id of a rank: that on its host, as the GPU's
// processes say it, else the one that the process itself reports. It returns 0
// if it is unknown.
func (r *run) pidOf(name string) int64 {
	for _, held := range r.gpus {
		for _, one := range held.gpu.streams {
			if one.series != GPUProcess || one.gone || one.labels.Run != r.id || one.labels.Rank != name {
				continue
			}
			if pid, err := strconv.ParseInt(one.labels.Own[0], 10, 32); err == nil && pid > 0 {
				return pid
			}
		}
	}
	if one := r.ranks[name]; one != nil {
		return one.pid
	}
	return 0
}

// maxNamedRanks limits the ranks that evidence names.
const maxNamedRanks = 4

// rankEvidence says which ranks finished something else last than the others.
func (s *Store) rankEvidence(n *Need, ranks, suspects []Rank, now time.Time) {
	counts := spansOf(ranks)
	switch {
	case len(counts) == 0:
		return
	case len(suspects) == 0 && len(counts) == 1:
		for span := range counts {
			n.say("%s finished %s last", counted(counts[span], "rank", "ranks"), span)
		}
		return
	case len(suspects) == 0:
		var all []string
		for _, span := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, counted(counts[span], "rank", "ranks")+" "+span)
		}
		n.say("finished last: %s", list(all, maxNamedRanks))
		return
	}
	for _, rank := range suspects[:min(len(suspects), maxNamedRanks)] {
		n.say("%s last finished %s at %s", rankPlace(rank), rank.LastSpan, clock(*rank.LastSpanTime, now))
	}
	if more := len(suspects) - maxNamedRanks; more > 0 {
		n.say("and %s more", counted(more, "rank", "ranks"))
	}
	for _, rank := range suspects {
		counts[rank.LastSpan]--
	}
	var others []string
	for _, span := range slices.Sorted(maps.Keys(counts)) {
		if counts[span] > 0 {
			others = append(others, strconv.Itoa(counts[span])+" others last finished "+span)
		}
	}
	if len(others) > 0 {
		n.say("%s", list(others, maxNamedRanks))
	}
}

// rankPlace names a rank with its host and GPU.
func rankPlace(rank Rank) string {
	name := "rank " + rank.Rank
	if rank.Rank == "" {
		name = "the process"
	}
	var where []string
	if rank.Host != "" {
		where = append(where, rank.Host)
	}
	if rank.GPUIndex != "" {
		where = append(where, "GPU "+rank.GPUIndex)
	}
	if len(where) == 0 {
		return name
	}
	return name + " (" + strings.Join(where, ", ") + ")"
}

// spansOf counts the ranks by what they finished last.
func spansOf(ranks []Rank) map[string]int {
	counts := make(map[string]int)
	for _, rank := range ranks {
		if rank.LastSpan != "" && rank.LastSpanTime != nil {
			counts[rank.LastSpan]++
		}
	}
	return counts
}

// apart returns the ranks whose last finished span differs from that of most
// others. If all finished the same, it returns the one that stopped clearly
// before the others. It returns none where no rank stands out.
func apart(ranks []Rank) (out []Rank) {
	counts := spansOf(ranks)
	total, most, usual := 0, 0, ""
	for _, span := range slices.Sorted(maps.Keys(counts)) {
		total += counts[span]
		if counts[span] > most {
			most, usual = counts[span], span
		}
	}
	if total < 2 {
		return nil
	}
	if len(counts) > 1 {
		if 2*most <= total {
			return nil
		}
		for _, rank := range ranks {
			if rank.LastSpan != "" && rank.LastSpan != usual && rank.LastSpanTime != nil {
				out = append(out, rank)
			}
		}
		return out
	}
	return earliest(ranks)
}

// clearlyBefore is how much earlier than all others a rank stopped if it stands
// out.
const clearlyBefore = 2 * time.Second

// earliest returns the rank that stopped clearly before all others.
func earliest(ranks []Rank) []Rank {
	timed := slices.DeleteFunc(slices.Clone(ranks), func(rank Rank) bool { return rank.LastSpanTime == nil })
	slices.SortStableFunc(timed, func(a, b Rank) int { return a.LastSpanTime.Compare(*b.LastSpanTime) })
	if len(timed) < 2 || timed[1].LastSpanTime.Sub(*timed[0].LastSpanTime) < clearlyBefore {
		return nil
	}
	return timed[:1]
}

// gpuUse says how busy the GPUs of a run are, and at which power: at full use and
// low power they wait.
func gpuUse(r *run) string {
	var use, power total
	for _, held := range r.gpus {
		if v := held.gpu.number(GPUUtilization); v != nil {
			use.add(*v)
		}
		if v := held.gpu.number(GPUPower); v != nil {
			power.add(*v)
		}
	}
	switch {
	case use.n == 0:
		return ""
	case power.n == 0:
		return counted(len(r.gpus), "GPU", "GPUs") + " at " + percent(*use.mean())
	default:
		return counted(len(r.gpus), "GPU", "GPUs") + " at " + percent(*use.mean()) + " and " + number(*power.mean()) + " W"
	}
}

// failedGPUEvidence names the driver's error and what the driver asks for.
func (s *Store) failedGPUEvidence(n *Need, p *problem, now time.Time) {
	n.Next = "Drain the host, and find out what the driver reports: nvidia-smi -q."
	if len(p.gpus) == 0 {
		return
	}
	g := p.gpus[0]
	for _, one := range g.streams {
		if one.series == GPUStatus && one.value == 1 && g.current(one, now) {
			n.say("the driver reports the state %s", one.labels.Own[0])
		}
	}
	if xid := s.gpus.xids[g.gpuID]; xid != nil {
		n.say("%s at %s", strings.TrimSpace("XID "+xid.Code+" "+xid.Message), clock(xid.Time, now))
	}
	if held := cmp.Or(n.Service, n.RunID, n.Job); held != "" && (n.Run != "" || n.Job != "") {
		n.say("held by %s", held)
	}
	action := 0.0
	if v := g.number(GPURecovery); v != nil {
		action = *v
	}
	switch action {
	case 1:
		n.Next = "The driver asks for a reset. Stop what uses the GPU, then reset it."
		n.Command = resetCommand(g)
	case 2:
		n.Next = "The driver asks for a reboot. Drain the host, then reboot it."
	case 3:
		n.Next = "The driver asks to end peer-to-peer work. Stop the runs that use this GPU together with others."
	case 4:
		n.Next = "The driver asks to drain and reset the GPU. Let its run end, then reset it."
		n.Command = resetCommand(g)
	case 5:
		n.Next = "The driver asks to restart the IMEX domain of the GPU."
	}
}

// resetCommand returns the command that resets a GPU, "" if its id is no UUID.
func resetCommand(g *gpu) string {
	for _, c := range []byte(g.id) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	if !strings.HasPrefix(g.id, "GPU-") {
		return ""
	}
	return "sudo nvidia-smi --gpu-reset -i " + g.id
}

// restartEvidence counts the attempts and names the last failure.
func (s *Store) restartEvidence(state *State, n *Need, p *problem, now time.Time) {
	n.Next = "Read why the last attempt ended: the log of the launcher, and the failures of the run."
	if p.run == nil {
		return
	}
	var row Run
	p.run.addNumbers(&row, now)
	if row.Attempts != nil {
		n.Value = row.Attempts
		n.say("attempt %s", number(*row.Attempts))
	}
	if row.Steps != nil {
		n.say("step %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64))
	}
	if f := lastFailure(state, func(f *Failure) bool { return f.Run == p.run.key }); f != nil {
		n.say("last failure %s in %s at %s", f.Class, cmp.Or(f.Operation, f.Service), clock(lastSeen(f), now))
		n.Command = f.Command
	}
}

// lastFailure returns the newest failure that is wanted, or nil.
func lastFailure(state *State, wanted func(*Failure) bool) *Failure {
	for i := range state.Failures {
		if wanted(&state.Failures[i]) {
			return &state.Failures[i]
		}
	}
	return nil
}

// failingEvidence names the errors, and the version that has them.
func (s *Store) failingEvidence(state *State, n *Need, p *problem, now time.Time) {
	n.Unit = "1"
	n.Next = "Read the last failures of the service."
	of := s.services.all[p.service]
	if of == nil {
		return
	}
	n.Value, n.Usual = of.errorRatios(now)
	if n.Value != nil && n.Usual != nil {
		n.say("%s of the last requests failed, %s before", percent(*n.Value), percent(*n.Usual))
	} else if n.Value != nil {
		n.say("%s of the last requests failed", percent(*n.Value))
	}
	var since []failedClass
	for i := range state.Failures {
		f := &state.Failures[i]
		if n := s.failures.since(f, p.since.Add(-arrivalTolerance)); f.Service == of.name && n > 0 {
			since = append(since, failedClass{f, n})
		}
	}
	slices.SortStableFunc(since, func(a, b failedClass) int { return cmp.Compare(b.n, a.n) })
	if len(since) > 0 {
		n.next(since[0].Failure)
	}
	var classes []string
	for _, one := range since {
		classes = append(classes, one.Class+" "+strconv.FormatInt(one.n, 10)+"×")
	}
	if len(classes) > 0 {
		n.say("since the onset: %s", list(classes, maxNamedRanks))
	}
	if text := s.failingVersion(of); text != "" {
		n.say("%s", text)
	}
}

// arrivalTolerance is how much earlier a failure may arrive here than where
// ml_metrics counts it.
const arrivalTolerance = 2 * time.Second

// failedClass is a group of failures with the number of those since an onset.
type failedClass struct {
	*Failure
	n int64
}

// next says what to do about a failure.
func (n *Need) next(f *Failure) {
	n.Command = f.Command
	switch class := cmp.Or(f.Class, "the failure"); {
	case f.Command == "":
		n.Next = "Read the last failures of the service: most are " + class + "."
	case f.Replays:
		n.Next = "Reproduce " + class + "."
	default:
		n.Next = "See what is known of " + class + "."
	}
}

// failingVersion says which version fails, if others do not.
func (s *Store) failingVersion(of *service) string {
	requests, errors := make(map[string]float64), make(map[string]float64)
	for _, m := range s.models.all {
		if m.namespace != of.namespace || m.service != of.name {
			continue
		}
		for version, use := range m.versions {
			requests[version] += use.requests
			errors[version] += use.errors
		}
	}
	// A request fails at its tools, too.
	for version := range requests {
		errors[version] = max(errors[version], of.failed[version])
	}
	if len(requests) < 2 {
		return ""
	}
	versions := slices.Sorted(maps.Keys(requests))
	slices.SortStableFunc(versions, func(a, b string) int {
		return cmp.Compare(errors[b]/requests[b], errors[a]/requests[a])
	})
	worst, next := versions[0], versions[1]
	if errors[worst] == 0 || errors[next]/requests[next] > errors[worst]/requests[worst]/3 {
		return ""
	}
	if errors[next] == 0 {
		return "only version " + worst + " fails, not " + next
	}
	return "version " + worst + " fails more often than " + next
}

// slowEvidence compares the time of a step, and of the phases that grew.
func (s *Store) slowEvidence(n *Need, r *run, now time.Time) {
	n.Unit = "s"
	n.Next = "Open the run, and compare its phases and ranks."
	if r == nil {
		return
	}
	var row Run
	r.addNumbers(&row, now)
	n.Value, n.Usual = row.StepTime, row.StepTimeUsual
	if n.Value != nil && n.Usual != nil && *n.Usual > 0 {
		n.say("%s s/step, usually %s (%+.0f %%)", number(*n.Value), number(*n.Usual), 100*(*n.Value / *n.Usual - 1))
	}
	grown := r.growths()
	whole := grown[wholeStep]
	for _, phase := range slices.Sorted(maps.Keys(grown)) {
		g := grown[phase]
		if phase == wholeStep || whole == nil || whole.steps == 0 || whole.stepsBefore == 0 {
			continue
		}
		// A phase counts that explains a tenth of the step.
		since, before := g.since/whole.steps, g.before/whole.stepsBefore
		if since < slowerThan*before || since-before < 0.1*whole.since/whole.steps {
			continue
		}
		n.say("%s", phase+" "+number(before)+" → "+number(since)+" s"+g.who())
		if phase == "data_load" {
			n.Next = "Look at the input: storage, network and the workers of the data loader."
		}
	}
	if reasons := throttled(r, now); len(reasons) > 0 {
		n.say("clocks are lowered: %s", list(reasons, maxNamedRanks))
	}
}

// throttled returns the reasons for which GPUs of a run lower their clocks.
func throttled(r *run, now time.Time) []string {
	var reasons []string
	for _, held := range r.gpus {
		for _, one := range held.gpu.streams {
			if one.series == GPUThrottle && one.value == 1 && held.gpu.current(one, now) {
				reasons = append(reasons, one.labels.Own[0])
			}
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// idleEvidence says what memory is held and since when nothing is done.
func (s *Store) idleEvidence(n *Need, p *problem, now time.Time) {
	n.Next = "Ask " + cmp.Or(n.Owner, "the owner") + " whether the process may end."
	var memory, use total
	for _, g := range p.gpus {
		if v := g.number(GPUMemoryUsed); v != nil {
			memory.add(*v)
		}
		if v := g.number(GPUUtilization); v != nil {
			use.add(*v)
		}
	}
	if memory.n > 0 {
		held := gib(memory.sum / float64(memory.n))
		if memory.n > 1 {
			held = strconv.Itoa(memory.n) + " × " + held
		}
		n.say("%s held", held)
	}
	if use.n > 0 {
		n.say("GPU use %s", percent(*use.mean()))
	} else {
		n.say("idle for %s", span(now.Sub(p.since)))
	}
	if held := cmp.Or(n.Job, n.Service, n.RunID); held != "" {
		n.say("by %s", held)
	}
}
