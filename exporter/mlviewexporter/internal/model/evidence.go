package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/words"
)

// addEvidence says what was observed of a problem, and what to do next. It
// composes what the model holds and decides nothing.
func (s *problems) addEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	s.ownEvidence(state, n, p, now)
	if s.settings.Fleet && p.record != nil && len(p.record.Evidence) > 0 {
		takeEvidence(n, p.record)
	}
}

// ownEvidence says what the page itself has observed, or what the record of a problem
// says if the page has no words of its own for the kind.
func (s *problems) ownEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	switch p.kind {
	case api.LooksHung:
		hungEvidence(n, p.run, now)
	case api.GPUFailed:
		s.failedGPUEvidence(n, p, now)
	case api.RestartLoop:
		restartEvidence(state, n, p, now)
	case api.Failing:
		s.failingEvidence(state, n, p, now)
	case api.Slow:
		slowEvidence(n, p.run, now)
	case api.HeldIdle:
		idleEvidence(n, p, now)
	default:
		recorded(n, p.record)
	}
}

// hungEvidence names the last step, the ranks that do something else than the
// others, the GPUs and the last checkpoint.
func hungEvidence(n *api.Need, r *runs.Run, now time.Time) {
	if r == nil {
		n.Next = "Look at the processes of the run with py-spy dump."
		return
	}
	var row api.Run
	r.AddNumbers(&row, now)
	switch {
	case row.Steps != nil && *row.Steps > 0 && row.LastStep != nil:
		n.Say("last step %s at %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64), words.Clock(*row.LastStep, now))
	case row.Steps != nil && *row.Steps > 0:
		n.Say("last step %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64))
	default:
		n.Say("%s", noStep(r.ProcessCount(), words.Clock(n.Since, now)))
	}
	ranks, _ := r.RankRows()
	suspects := apart(ranks)
	rankEvidence(n, ranks, suspects, now)
	if len(ranks) == 0 {
		n.Say("no rank is known: no span of the run has arrived")
	}
	if use := gpuUse(r); use != "" {
		n.Say("%s", use)
	}
	if !r.Checkpoint.IsZero() {
		n.Say("last checkpoint at %s", words.Clock(r.Checkpoint, now))
	}
	n.Next, n.Command = inspect(r, ranks, suspects)
}

// inspect says which process of a run that looks hung to look at first, on which
// host, and with which command. Where its process id is unknown, the command lists
// those that hold its GPU.
func inspect(r *runs.Run, ranks, suspects []api.Rank) (next, command string) {
	var first api.Rank
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
		if len(r.GPUs) > 1 {
			next = "See what each process waits for, for example that of " + places([]*gpus.GPU{r.GPUs[0].GPU}) + ". "
		}
	}
	if first.Host == "" && len(r.GPUs) > 0 {
		first.Host, first.GPUIndex = r.GPUs[0].GPU.Host, r.GPUs[0].GPU.Index
	}
	host := "On " + cmp.Or(first.Host, "its host")
	if pid := pidOf(r, first.Rank); pid > 0 {
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
func pidOf(r *runs.Run, name string) int64 {
	for _, held := range r.GPUs {
		for _, one := range held.GPU.Streams {
			if one.Series != series.GPUProcess || one.Gone || one.Labels.Run != r.ID || one.Labels.Rank != name {
				continue
			}
			if pid, err := strconv.ParseInt(one.Labels.Own[0], 10, 32); err == nil && pid > 0 {
				return pid
			}
		}
	}
	if one := r.Ranks[name]; one != nil {
		return one.PID
	}
	return 0
}

// maxNamedRanks limits the ranks that evidence names.
const maxNamedRanks = 4

// rankEvidence says which ranks finished something else last than the others.
func rankEvidence(n *api.Need, ranks, suspects []api.Rank, now time.Time) {
	counts := spansOf(ranks)
	switch {
	case len(counts) == 0:
		return
	case len(suspects) == 0 && len(counts) == 1:
		for span := range counts {
			n.Say("%s finished %s last", words.Counted(counts[span], "rank", "ranks"), span)
		}
		return
	case len(suspects) == 0:
		var all []string
		for _, span := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, words.Counted(counts[span], "rank", "ranks")+" "+span)
		}
		n.Say("finished last: %s", words.List(all, maxNamedRanks))
		return
	}
	for _, rank := range suspects[:min(len(suspects), maxNamedRanks)] {
		n.Say("%s last finished %s at %s", rankPlace(rank), rank.LastSpan, words.Clock(*rank.LastSpanTime, now))
	}
	if more := len(suspects) - maxNamedRanks; more > 0 {
		n.Say("and %s more", words.Counted(more, "rank", "ranks"))
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
		n.Say("%s", words.List(others, maxNamedRanks))
	}
}

// rankPlace names a rank with its host and GPU.
func rankPlace(rank api.Rank) string {
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
func spansOf(ranks []api.Rank) map[string]int {
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
func apart(ranks []api.Rank) (out []api.Rank) {
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
func earliest(ranks []api.Rank) []api.Rank {
	timed := slices.DeleteFunc(slices.Clone(ranks), func(rank api.Rank) bool { return rank.LastSpanTime == nil })
	slices.SortStableFunc(timed, func(a, b api.Rank) int { return a.LastSpanTime.Compare(*b.LastSpanTime) })
	if len(timed) < 2 || timed[1].LastSpanTime.Sub(*timed[0].LastSpanTime) < clearlyBefore {
		return nil
	}
	return timed[:1]
}

// gpuUse says how busy the GPUs of a run are, and at which power: at full use and
// low power they wait.
func gpuUse(r *runs.Run) string {
	var use, power series.Total
	for _, held := range r.GPUs {
		if v := held.GPU.Number(series.GPUUtilization); v != nil {
			use.Add(*v)
		}
		if v := held.GPU.Number(series.GPUPower); v != nil {
			power.Add(*v)
		}
	}
	switch {
	case use.N == 0:
		return ""
	case power.N == 0:
		return words.Counted(len(r.GPUs), "GPU", "GPUs") + " at " + words.Percent(*use.Mean())
	default:
		return words.Counted(len(r.GPUs), "GPU", "GPUs") + " at " + words.Percent(*use.Mean()) + " and " + words.Number(*power.Mean()) + " W"
	}
}

// failedGPUEvidence names the driver's error and what the driver asks for.
func (s *problems) failedGPUEvidence(n *api.Need, p *problem, now time.Time) {
	n.Next = "Drain the host, and find out what the driver reports: nvidia-smi -q."
	if len(p.gpus) == 0 {
		return
	}
	g := p.gpus[0]
	for _, one := range g.Streams {
		if one.Series == series.GPUStatus && one.Value == 1 && g.Current(one, now) {
			n.Say("the driver reports the state %s", one.Labels.Own[0])
		}
	}
	if xid := s.gpus.XIDs[g.Ref]; xid != nil {
		n.Say("%s at %s", strings.TrimSpace("XID "+xid.Code+" "+xid.Message), words.Clock(xid.Time, now))
	}
	if held := cmp.Or(n.Service, n.RunID, n.Job); held != "" && (n.Run != "" || n.Job != "") {
		n.Say("held by %s", held)
	}
	action := 0.0
	if v := g.Number(series.GPURecovery); v != nil {
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
func resetCommand(g *gpus.GPU) string {
	for _, c := range []byte(g.ID) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	if !strings.HasPrefix(g.ID, "GPU-") {
		return ""
	}
	return "sudo nvidia-smi --gpu-reset -i " + g.ID
}

// restartEvidence counts the attempts and names the last failure.
func restartEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	n.Next = "Read why the last attempt ended: the log of the launcher, and the failures of the run."
	if p.run == nil {
		return
	}
	var row api.Run
	p.run.AddNumbers(&row, now)
	if row.Attempts != nil {
		n.Value = row.Attempts
		n.Say("attempt %s", words.Number(*row.Attempts))
	}
	if row.Steps != nil {
		n.Say("step %s", strconv.FormatFloat(*row.Steps, 'f', 0, 64))
	}
	if f := lastFailure(state, func(f *api.Failure) bool { return f.Run == p.run.Key }); f != nil {
		n.Say("last failure %s in %s at %s", f.Class, cmp.Or(f.Operation, f.Service), words.Clock(failures.LastSeen(f), now))
		n.Command = f.Command
	}
}

// lastFailure returns the newest failure that is wanted, or nil.
func lastFailure(state *api.State, wanted func(*api.Failure) bool) *api.Failure {
	for i := range state.Failures {
		if wanted(&state.Failures[i]) {
			return &state.Failures[i]
		}
	}
	return nil
}

// failingEvidence names the errors, and the version that has them.
func (s *problems) failingEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	n.Unit = "1"
	n.Next = "Read the last failures of the service."
	of := s.services.All[p.service]
	if of == nil {
		return
	}
	n.Value, n.Usual = of.ErrorRatios(now)
	if n.Value != nil && n.Usual != nil {
		n.Say("%s of the last requests failed, %s before", words.Percent(*n.Value), words.Percent(*n.Usual))
	} else if n.Value != nil {
		n.Say("%s of the last requests failed", words.Percent(*n.Value))
	}
	var since []failedClass
	for i := range state.Failures {
		f := &state.Failures[i]
		if n := s.failures.Since(f, p.since.Add(-arrivalTolerance)); f.Service == of.Name && n > 0 {
			since = append(since, failedClass{f, n})
		}
	}
	slices.SortStableFunc(since, func(a, b failedClass) int { return cmp.Compare(b.n, a.n) })
	if len(since) > 0 {
		nextOf(n, since[0].Failure)
	}
	var classes []string
	for _, one := range since {
		classes = append(classes, one.Class+" "+strconv.FormatInt(one.n, 10)+"×")
	}
	if len(classes) > 0 {
		n.Say("since the onset: %s", words.List(classes, maxNamedRanks))
	}
	if text := s.failingVersion(of); text != "" {
		n.Say("%s", text)
	}
}

// arrivalTolerance is how much earlier a failure may arrive here than where
// ml_metrics counts it.
const arrivalTolerance = 2 * time.Second

// failedClass is a group of failures with the number of those since an onset.
type failedClass struct {
	*api.Failure
	n int64
}

// nextOf says what to do about a failure.
func nextOf(n *api.Need, f *api.Failure) {
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
func (s *problems) failingVersion(of *serving.Service) string {
	requests, errors := make(map[string]float64), make(map[string]float64)
	for _, m := range s.models.All {
		if m.Namespace != of.Namespace || m.Service != of.Name {
			continue
		}
		for version, use := range m.Versions {
			requests[version] += use.Requests
			errors[version] += use.Errors
		}
	}
	// A request fails at its tools, too.
	for version := range requests {
		errors[version] = max(errors[version], of.Failed[version])
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
func slowEvidence(n *api.Need, r *runs.Run, now time.Time) {
	n.Unit = "s"
	n.Next = "Open the run, and compare its phases and ranks."
	if r == nil {
		return
	}
	var row api.Run
	r.AddNumbers(&row, now)
	n.Value, n.Usual = row.StepTime, row.StepTimeUsual
	if n.Value != nil && n.Usual != nil && *n.Usual > 0 {
		n.Say("%s s/step, usually %s (%+.0f %%)", words.Number(*n.Value), words.Number(*n.Usual), 100*(*n.Value / *n.Usual - 1))
	}
	grown := growths(r)
	whole := grown[runs.WholeStep]
	for _, phase := range slices.Sorted(maps.Keys(grown)) {
		g := grown[phase]
		if phase == runs.WholeStep || whole == nil || whole.steps == 0 || whole.stepsBefore == 0 {
			continue
		}
		// A phase counts that explains a tenth of the step.
		since, before := g.since/whole.steps, g.before/whole.stepsBefore
		if since < slowerThan*before || since-before < 0.1*whole.since/whole.steps {
			continue
		}
		n.Say("%s", phase+" "+words.Number(before)+" → "+words.Number(since)+" s"+g.who())
		if phase == "data_load" {
			n.Next = "Look at the input: storage, network and the workers of the data loader."
		}
	}
	if reasons := throttled(r, now); len(reasons) > 0 {
		n.Say("clocks are lowered: %s", words.List(reasons, maxNamedRanks))
	}
}

// throttled returns the reasons for which GPUs of a run lower their clocks.
func throttled(r *runs.Run, now time.Time) []string {
	var reasons []string
	for _, held := range r.GPUs {
		for _, one := range held.GPU.Streams {
			if one.Series == series.GPUThrottle && one.Value == 1 && held.GPU.Current(one, now) {
				reasons = append(reasons, one.Labels.Own[0])
			}
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// idleEvidence says what memory is held and since when nothing is done.
func idleEvidence(n *api.Need, p *problem, now time.Time) {
	n.Next = "Ask " + cmp.Or(n.Owner, "the owner") + " whether the process may end."
	var memory, use series.Total
	for _, g := range p.gpus {
		if v := g.Number(series.GPUMemoryUsed); v != nil {
			memory.Add(*v)
		}
		if v := g.Number(series.GPUUtilization); v != nil {
			use.Add(*v)
		}
	}
	if memory.N > 0 {
		held := words.GiB(memory.Sum / float64(memory.N))
		if memory.N > 1 {
			held = strconv.Itoa(memory.N) + " × " + held
		}
		n.Say("%s held", held)
	}
	if use.N > 0 {
		n.Say("GPU use %s", words.Percent(*use.Mean()))
	} else {
		n.Say("idle for %s", words.Span(now.Sub(p.since)))
	}
	if held := cmp.Or(n.Job, n.Service, n.RunID); held != "" {
		n.Say("by %s", held)
	}
}
