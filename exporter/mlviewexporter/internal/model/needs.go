package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// urgency returns the index of a kind in mlattr.Problems, which is in order of
// urgency. It is negative for an unknown kind and for a mark.
func urgency(kind string) int {
	return slices.IndexFunc(mlattr.Problems[:], func(one mlattr.ProblemKind) bool {
		return one.Name == kind && one.Severity != mlattr.SeverityMark
	})
}

// problem is one ml.problem.onset.timestamp, or those of one holder that keeps
// several GPUs idle.
type problem struct {
	kind    string
	since   time.Time
	run     *run
	runID   string
	service serviceID
	job     string
	gpus    []*gpu
	onsets  []time.Time
	// host is the host that has the problem, record what ml_metrics has said of it,
	// nil if that has not arrived; ids are those of all records of joined problems.
	host   string
	record *Record
	ids    []string
	// stale is when the newest evidence arrived, zero if there is new one.
	stale time.Time
}

// problemOf returns the problem of a stream. ok is false for a kind that nobody
// has defined, and without a subject.
func (s *Store) problemOf(one *stream, now time.Time) (p problem, ok bool) {
	l := &one.labels
	since, ok := unix(one.value)
	if !ok || urgency(l.Own[0]) < 0 {
		return p, false
	}
	p = s.problemAt(l.Own[0], l, since)
	p.job = l.Job
	if p.record = s.records[one.recordID()]; p.record != nil {
		p.ids, p.stale = []string{p.record.ID}, p.record.Stale
	}
	if p.stale.IsZero() && one.old(now) {
		p.stale = one.at
	}
	return p, l.Run != "" || l.Service != "" || l.GPU != "" || l.Host != ""
}

// problemAt returns a problem of a kind with what the page knows of what has it.
func (s *Store) problemAt(kind string, l *Labels, since time.Time) problem {
	p := problem{kind: kind, since: since, runID: l.Run, service: serviceID{l.Namespace, l.Service}}
	p.run = s.runs.find(l.Namespace, l.Service, l.Run, l.Host)
	if g := s.gpus.all[gpuID{l.Host, l.GPU}]; g != nil && l.GPU != "" {
		p.gpus, p.onsets = []*gpu{g}, []time.Time{p.since}
	}
	if l.GPU == "" {
		p.host = l.Host
	}
	if p.kind == HostSilent {
		s.heldOn(&p)
	}
	return p
}

// heldOn adds the GPUs that the run of the problem, or anybody, held on its host.
func (s *Store) heldOn(p *problem) {
	for _, g := range s.gpus.all {
		if g.host == p.host && slices.ContainsFunc(g.workloads(g.lastSeen), func(one *stream) bool { return p.runID == "" || one.labels.Run == p.runID }) {
			p.gpus, p.onsets = append(p.gpus, g), append(p.onsets, p.since)
		}
	}
	slices.SortFunc(p.gpus, compareGPUs)
}

// heard reports whether the host that is silent to the collector of the problem sends
// something to another one.
func (s *Store) heard(p *problem, now time.Time) bool {
	return p.kind == HostSilent && s.hosts.reporting(p.host, now)
}

// outdated reports whether another collector than that of the stream has newer evidence
// of the run that has the problem.
func (p *problem) outdated(one *stream) bool {
	kind, _ := mlattr.ProblemNamed(p.kind)
	return p.run != nil && kind.Of == mlattr.OfRun && !p.run.written(one)
}

// known reports whether the page has what a problem is about.
func (s *Store) known(one *stream) bool {
	p, ok := s.problemOf(one, one.at)
	return ok && (p.run != nil || len(p.gpus) > 0 || s.services.all[p.service] != nil && p.runID == "" && one.labels.GPU == "" || p.host != "" && s.hosts.all[p.host] != nil)
}

// replaceProblem removes a problem of something that the page does not know, or whose
// sender is silent, for one of something that it knows.
func (s *Store) replaceProblem(by *stream, now time.Time) bool {
	// Its value comes later.
	if !s.known(&stream{streamKey: by.streamKey, value: 1}) || now.Sub(s.fullProblems).Abs() < searchAgain {
		return false
	}
	for one := range s.problems {
		if !s.known(one) || one.old(now) {
			delete(s.problems, one)
			s.streams.remove(one)
			return true
		}
	}
	s.fullProblems = now
	return false
}

// noteProblem marks the onset of a run's problem on its curves, and keeps what
// is needed to say what a slow run does longer.
func (s *Store) noteProblem(one *stream) {
	if p, ok := s.problemOf(one, one.at); ok && p.run != nil && !p.outdated(one) {
		if p.kind == Slow {
			p.run.becomesSlow(p.since, one.at)
		}
		s.changes.mark(p.run.key, Mark{Time: p.since, Kind: p.kind, Text: strings.ReplaceAll(p.kind, "_", " ")})
	}
}

// needRows returns the problems that ml_metrics reports, the most urgent first,
// and notes them at runs and GPUs.
func (s *Store) needRows(state *State, now time.Time) []Need {
	for _, r := range s.runs.all {
		r.needs = nil
	}
	var all []problem
	known := make(map[string]int)
	for one := range s.problems {
		if !one.lasts(now) {
			continue
		}
		p, ok := s.problemOf(one, now)
		if !ok || p.outdated(one) || s.heard(&p, now) {
			continue
		}
		if p.run != nil && !slices.Contains(p.run.needs, p.kind) {
			p.run.needs = append(p.run.needs, p.kind)
		}
		id := s.problemID(state, &p)
		if at, again := known[id]; again {
			all[at].join(p)
			continue
		}
		known[id] = len(all)
		all = append(all, p)
	}
	for _, r := range s.runs.all {
		slices.SortFunc(r.needs, func(a, b string) int { return cmp.Compare(urgency(a), urgency(b)) })
	}
	rows := make([]Need, 0, len(all))
	for i := range all {
		rows = append(rows, s.need(state, &all[i], now))
	}
	follow(rows, all)
	s.markGPUs(state, all)
	rows = append(rows, s.silentCollectors(state, now)...)
	slices.SortFunc(rows, compareNeeds)
	rows = grouped(rows)
	return limited(state, "needs", rows, maxNeeds)
}

// compareNeeds orders needs by kind, then by what is lost, then by age. Those without
// new evidence come last.
func compareNeeds(a, b Need) int {
	hours := func(n Need) float64 {
		if n.GPUHours == nil {
			return -1
		}
		return *n.GPUHours
	}
	return cmp.Or(
		trueFirst(a.NoEvidenceSince == nil, b.NoEvidenceSince == nil),
		cmp.Compare(urgency(a.Kind), urgency(b.Kind)),
		cmp.Compare(hours(b), hours(a)), a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key))
}

// problemID tells problems apart. A failed GPU is one problem, also if several
// workloads hold it, and so are the GPUs that a holder keeps idle.
func (s *Store) problemID(state *State, p *problem) string {
	id := []string{p.kind, p.service.namespace, p.service.name, p.runID, p.host}
	if len(p.gpus) > 0 {
		id = []string{p.kind, p.gpus[0].key}
		if p.kind == HeldIdle {
			id[1] = s.heldBy(state, p.gpus[0], p.record)
		}
	}
	return strings.Join(id, "\x00")
}

// heldBy names the holder of a GPU on its host, so that its GPUs are one problem.
func (s *Store) heldBy(state *State, g *gpu, r *Record) string {
	if r != nil {
		if o := &r.onset; cmp.Or(o.RunID, o.Job, o.Service) != "" {
			return strings.Join([]string{g.host, cmp.Or(o.RunID, o.Job, o.Service)}, "\x00")
		}
	}
	row := state.gpu(g.key)
	if row == nil || len(row.Holders) == 0 {
		return g.key
	}
	h := row.Holders[0]
	return strings.Join([]string{g.host, cmp.Or(h.RunID, h.Name, h.Service)}, "\x00")
}

// gpu returns the row of a GPU, or nil.
func (state *State) gpu(key string) *GPU {
	for i := range state.GPUs {
		if state.GPUs[i].Key == key {
			return &state.GPUs[i]
		}
	}
	return nil
}

// join adds the same problem of another GPU or run.
func (p *problem) join(other problem) {
	if len(other.gpus) > 0 && !slices.Contains(p.gpus, other.gpus[0]) {
		p.gpus, p.onsets = append(p.gpus, other.gpus...), append(p.onsets, other.onsets...)
	}
	if other.since.Before(p.since) {
		p.since = other.since
	}
	p.ids = append(p.ids, other.ids...)
	if p.stale.IsZero() || other.stale.IsZero() {
		p.stale = time.Time{}
	} else if other.stale.After(p.stale) {
		p.stale = other.stale
	}
	if p.record == nil || other.record != nil && other.record.ID < p.record.ID {
		p.record = other.record
	}
	// The order of a map must not decide.
	if p.run == nil || other.run != nil && other.run.key < p.run.key {
		p.run, p.runID = other.run, other.runID
	}
	if cmp.Or(cmp.Compare(other.service.name, p.service.name), cmp.Compare(other.service.namespace, p.service.namespace), cmp.Compare(other.job, p.job)) < 0 {
		p.service, p.job = other.service, other.job
	}
}

// need returns the row of a problem.
func (s *Store) need(state *State, p *problem, now time.Time) Need {
	slices.SortFunc(p.gpus, compareGPUs)
	n := Need{
		Kind: p.kind, Since: p.since, RunID: p.runID, Service: p.service.name, Job: p.job,
		Team: p.service.namespace, Evidence: []string{}, Subject: p.service.name, NoEvidenceSince: timePointer(p.stale),
	}
	if kind, ok := mlattr.ProblemNamed(p.kind); ok {
		n.Severity = string(kind.Severity)
	}
	if of := s.services.all[p.service]; of != nil && p.runID == "" {
		n.Owner = s.runs.ownerOfService(of)
	}
	subject := cmp.Or(p.runID, p.service.name, p.host)
	if r := p.run; r != nil {
		n.Run, n.RunID, n.Service = r.key, r.id, r.service
		n.Job, n.Owner, n.Team = cmp.Or(r.jobName, r.job), s.runs.ownerOf(r), r.namespace
		n.Subject = cmp.Or(r.jobName, r.service, r.id)
		if p.kind != HeldIdle && p.kind != GPUFailed {
			for _, held := range r.gpus {
				n.GPUs = append(n.GPUs, held.gpu.key)
			}
		}
	}
	if n.Subject == "" && p.host != "" {
		n.Subject = "host " + p.host
	}
	if r := p.record; r != nil && r.Holder != (Workload{}) {
		name, owner := s.runs.owners.named(&r.Holder, n.Service)
		n.Job, n.Owner = cmp.Or(n.Job, name), cmp.Or(n.Owner, owner)
	}
	if len(p.gpus) > 0 {
		s.aboutGPUs(state, &n, p)
		subject = p.gpus[0].key
	}
	if p.record != nil {
		p.record.onset.keep(&n, len(p.gpus) == 0)
	}
	n.Key = keyOf("need", p.kind, p.service.namespace, p.service.name, subject)
	n.Simulated, n.Recorded = s.isSimulated(p, n.Service)
	n.Before = s.beforeProblem(p, &n)
	s.addEvidence(state, &n, p, now)
	if !p.stale.IsZero() {
		now = p.stale
	}
	n.GPUHours = gpuHours(&n, p, now)
	return n
}

// isSimulated reports whether data of a problem's run, service or GPUs is simulated or
// recorded, and whether nothing but GPUs is, and these come from a recording.
func (s *Store) isSimulated(p *problem, service string) (simulated, recorded bool) {
	simulated, recorded = s.services.simulated[service], !s.services.simulated[service]
	if p.run != nil && p.run.isSimulated() {
		simulated, recorded = true, recorded && p.run.isRecorded()
	}
	for _, g := range p.gpus {
		if g.simulated {
			simulated, recorded = true, recorded && g.recorded()
		}
	}
	return simulated, simulated && recorded
}

// aboutGPUs names the GPUs of a problem and who holds them.
func (s *Store) aboutGPUs(state *State, n *Need, p *problem) {
	for _, g := range p.gpus {
		n.GPUs = append(n.GPUs, g.key)
	}
	n.Subject = places(p.gpus)
	row := state.gpu(p.gpus[0].key)
	if row == nil || len(row.Holders) == 0 {
		return
	}
	h := row.Holders[0]
	n.Run, n.RunID = cmp.Or(n.Run, h.Run), cmp.Or(n.RunID, h.RunID)
	n.Service, n.Owner, n.Job = cmp.Or(n.Service, h.Service), cmp.Or(n.Owner, h.Owner), cmp.Or(n.Job, h.Name)
}

// places names GPUs of one host, such as "gpu-08: GPU 4-7".
func places(gpus []*gpu) string {
	names := make([]string, len(gpus))
	for i, g := range gpus {
		names[i] = cmp.Or(g.index, g.id)
	}
	return cmp.Or(gpus[0].host, "unknown host") + ": GPU " + list(Ranges(names, 2), 16)
}

// gpuHours returns the GPU-hours since the onset. Of a slow run only those count
// that its steps take longer than usual.
func gpuHours(n *Need, p *problem, now time.Time) *float64 {
	if len(p.onsets) > 0 {
		sum := 0.0
		for _, onset := range p.onsets {
			sum += max(0, now.Sub(onset).Hours())
		}
		return finite(sum)
	}
	if p.run == nil {
		return nil
	}
	var row Run
	p.run.addNumbers(&row, now)
	gpus := row.GPUs
	if gpus == nil {
		sum := 0.0
		for _, held := range p.run.gpus {
			sum += held.share
		}
		gpus = &sum
	}
	if *gpus <= 0 {
		return nil
	}
	hours := *gpus * max(0, now.Sub(p.since).Hours())
	if n.Kind == Slow {
		if n.Value == nil || n.Usual == nil || *n.Value <= 0 {
			return nil
		}
		hours *= max(0, 1 - *n.Usual / *n.Value)
	}
	return finite(hours)
}

// Activities of GPUs, besides the kinds LooksHung, Slow and HeldIdle.
const (
	activityWorking = "working"
	activityFailed  = "failed"
	activityFree    = "free"
	activityNoData  = "no_data"
)

// markGPUs sets what each GPU does.
func (s *Store) markGPUs(state *State, all []problem) {
	at := make(map[string]*GPU, len(state.GPUs))
	for i := range state.GPUs {
		row := &state.GPUs[i]
		at[row.Key] = row
		switch {
		case row.Health == activityFailed:
			row.Activity = activityFailed
		case len(row.Holders) > 0 || row.Utilization != nil && *row.Utilization > 0:
			row.Activity = activityWorking
		default:
			row.Activity = activityFree
		}
	}
	turns := []string{activityFailed, LooksHung, Slow, HeldIdle}
	set := func(g *gpu, activity string) {
		row := at[g.key]
		// A GPU that has failed may be read as well again before its problem ends.
		if row == nil || activity == activityFailed && row.Health != "" && row.Health != activityFailed {
			return
		}
		row.HeldIdle = row.HeldIdle || activity == HeldIdle
		was := slices.Index(turns, row.Activity)
		if turn := slices.Index(turns, activity); turn >= 0 && (was < 0 || turn < was) {
			row.Activity = activity
		}
	}
	for i := range all {
		p := &all[i]
		if p.kind == HostSilent {
			continue
		}
		activity := p.kind
		if p.kind == GPUFailed {
			activity = activityFailed
		}
		for _, g := range p.gpus {
			set(g, activity)
		}
		if p.run != nil && (p.kind == LooksHung || p.kind == Slow) {
			for _, held := range p.run.gpus {
				set(held.gpu, activity)
			}
		}
	}
	for _, row := range at {
		if row.NoDataSince != nil {
			row.LastActivity, row.Activity = row.Activity, activityNoData
		}
	}
}

// countGPUs counts the GPUs by what they do. A MIG device counts for the GPU that
// it is part of, which does what the worst of them does.
func (s *Store) countGPUs(state *State) {
	turns := []string{activityFailed, LooksHung, Slow, HeldIdle, activityNoData, activityWorking, activityFree}
	counts := make(map[string]int)
	parts := make(map[gpuID]int)
	whole := make(map[gpuID]bool)
	for _, row := range state.GPUs {
		whole[gpuID{row.Host, row.ID}] = true
	}
	for _, row := range state.GPUs {
		if parent := (gpuID{row.Host, row.Parent}); row.Parent != "" && whole[parent] {
			turn := slices.Index(turns, row.Activity)
			if worst, known := parts[parent]; !known || turn < worst {
				parts[parent] = turn
			}
		}
	}
	for i := range state.GPUs {
		row := &state.GPUs[i]
		state.Collector.Simulated = state.Collector.Simulated || row.Simulated
		if row.Parent != "" && whole[gpuID{row.Host, row.Parent}] {
			continue
		}
		if turn, divided := parts[gpuID{row.Host, row.ID}]; divided && turn < slices.Index(turns, row.Activity) {
			row.Activity = turns[turn]
		}
		counts[row.Activity]++
		if since := state.Collector.NoDataSince; row.NoDataSince != nil && (since == nil || row.NoDataSince.Before(*since)) {
			state.Collector.NoDataSince = row.NoDataSince
		}
	}
	state.Collector.GPUs = counts
}
