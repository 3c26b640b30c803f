package problems

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// urgency returns the index of a kind in mlattr.Problems, which is in order of
// urgency. It is negative for an unknown kind and for a mark.
func urgency(kind string) int {
	return slices.IndexFunc(mlattr.Problems, func(one mlattr.ProblemKind) bool {
		return one.Name == kind && one.Severity != mlattr.SeverityMark
	})
}

// problem is one ml.problem.onset.timestamp, or those of one holder that keeps
// several GPUs idle.
type problem struct {
	mlattr.ProblemKind
	since   time.Time
	run     *runs.Run
	runID   string
	service serving.ServiceID
	job     string
	gpus    []*gpus.GPU
	onsets  []time.Time
	// host is the host that has the problem, record what ml_metrics has said of it,
	// nil if that has not arrived; ids are those of all records of joined problems.
	host   string
	record *input.Record
	ids    []string
	// stale is when the newest evidence arrived, zero if there is new one.
	stale time.Time
}

// problemOf returns the problem of a stream. ok is false for a kind that nobody
// has defined, and without a subject.
func (s *Set) problemOf(one *series.Stream, now time.Time) (p problem, ok bool) {
	l := &one.Labels
	since := series.Unix(one.Value)
	if since == nil || urgency(l.Own[0]) < 0 {
		return p, false
	}
	of := subjectOf(one)
	p = s.problemAt(l.Own[0], of, *since)
	p.job = l.Job
	if p.record = s.records[recordIDOf(l.Own[0], of)]; p.record != nil {
		p.ids, p.stale = []string{p.record.ID}, p.record.Stale
	}
	if p.stale.IsZero() && one.Old(now) {
		p.stale = one.At
	}
	return p, l.Run != "" || l.Service != "" || l.GPU != "" || l.Host != "" || p.Of == mlattr.OfFleet
}

// problemAt returns a problem of a kind with what the page knows of what has it.
func (s *Set) problemAt(kind string, of input.Subject, since time.Time) problem {
	p := problem{since: since, runID: of.Run, service: serving.ServiceID{Namespace: of.Namespace, Name: of.Service}}
	p.ProblemKind, _ = mlattr.ProblemNamed(kind)
	p.run = s.Runs.Find(of.Namespace, of.Service, of.Run, of.Host)
	if of.GPU == "" {
		p.host = of.Host
	} else if g := s.GPUs.All[gpus.Ref{Host: of.Host, ID: of.GPU}]; g != nil {
		p.gpus, p.onsets = []*gpus.GPU{g}, []time.Time{since}
	}
	if kind != mlattr.ProblemHostSilent {
		return p
	}
	// The GPUs that the run of the problem, or anybody, held on its host.
	for _, g := range s.GPUs.All {
		if g.Host == p.host && slices.ContainsFunc(g.Workloads(g.LastSeen), func(one *series.Stream) bool { return of.Run == "" || one.Labels.Run == of.Run }) {
			p.gpus, p.onsets = append(p.gpus, g), append(p.onsets, since)
		}
	}
	slices.SortFunc(p.gpus, gpus.Compare)
	return p
}

// outdated reports whether another collector than that of the stream has newer evidence
// of the run that has the problem.
func (p *problem) outdated(one *series.Stream) bool {
	return p.run != nil && p.Of == mlattr.OfRun && !p.run.Written(one)
}

// known reports whether the page has what a problem is about.
func (s *Set) known(one *series.Stream) bool {
	p, ok := s.problemOf(one, one.At)
	return ok && (p.run != nil || len(p.gpus) > 0 || s.Services.All[p.service] != nil && p.runID == "" && one.Labels.GPU == "" || p.host != "" && s.Hosts.All[p.host] != nil)
}

// Add adds the problem of a stream, and reports whether there is room for it.
func (s *Set) Add(one *series.Stream, now time.Time) bool {
	if len(s.open) >= maxProblems && !s.replaceProblem(one, now) {
		s.Limits.Drop("problems")
		return false
	}
	s.open[one] = true
	return true
}

// replaceProblem removes a problem of something that the page does not know, or whose
// sender is silent, for one of something that it knows.
func (s *Set) replaceProblem(by *series.Stream, now time.Time) bool {
	// Its value comes later.
	if !s.known(&series.Stream{Key: by.Key, Value: 1}) || now.Sub(s.full).Abs() < kept.SearchAgain {
		return false
	}
	for one := range s.open {
		if !s.known(one) || one.Old(now) {
			delete(s.open, one)
			s.Streams.Remove(one)
			return true
		}
	}
	s.full = now
	return false
}

// Mark marks the onset of a run's problem on its curves.
func (s *Set) Mark(one *series.Stream) {
	if p, ok := s.problemOf(one, one.At); ok && p.run != nil && !p.outdated(one) {
		s.Changes.Mark(p.run.Key, api.Mark{Time: p.since, Kind: p.Name, Text: strings.ReplaceAll(p.Name, "_", " ")})
	}
}

// Rows returns the problems that ml_metrics reports, the most urgent first,
// and notes them at runs and GPUs.
func (s *Set) Rows(state *api.State, now time.Time) []api.Need {
	for _, r := range s.Runs.All {
		r.Needs = nil
	}
	var all []*problem
	known := make(map[string]*problem)
	for one := range s.open {
		if !one.Lasts(now) {
			continue
		}
		p, ok := s.problemOf(one, now)
		// A host that is silent to the collector of the problem may send to another one.
		heard := p.Name == mlattr.ProblemHostSilent && s.Hosts.Reporting(p.host, now)
		if !ok || heard || p.outdated(one) {
			continue
		}
		if p.run != nil && !slices.Contains(p.run.Needs, p.Name) {
			p.run.Needs = append(p.run.Needs, p.Name)
		}
		id := s.problemID(&p)
		if first := known[id]; first != nil {
			first.join(&p)
		} else {
			known[id] = &p
			all = append(all, &p)
		}
	}
	for _, r := range s.Runs.All {
		slices.SortFunc(r.Needs, func(a, b string) int { return cmp.Compare(urgency(a), urgency(b)) })
	}
	rows := mlattr.Mapped(all, func(p *problem) api.Need { return s.need(state, p, now) })
	follow(rows, all)
	markGPUs(state, all)
	rows = append(rows, s.silences(state, now)...)
	slices.SortFunc(rows, compareNeeds)
	rows = grouped(rows)
	return api.Limited(state.Collector.Hidden, "needs", rows, maxNeeds)
}

// compareNeeds orders needs by kind, then by what is lost, then by age. Those without
// new evidence come last.
func compareNeeds(a, b api.Need) int {
	return cmp.Or(
		api.TrueFirst(a.NoEvidenceSince == nil, b.NoEvidenceSince == nil), cmp.Compare(urgency(a.Kind), urgency(b.Kind)),
		cmp.Compare(api.Value(b.GPUHours), api.Value(a.GPUHours)), api.TrueFirst(a.GPUHours != nil, b.GPUHours != nil),
		a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key))
}

// problemID tells problems apart. A failed GPU is one problem, also if several
// workloads hold it, and so are the GPUs that a holder keeps idle.
func (s *Set) problemID(p *problem) string {
	id := []string{p.Name, p.service.Namespace, p.service.Name, p.runID, p.host}
	if len(p.gpus) > 0 {
		id = []string{p.Name, p.gpus[0].Key}
	}
	if len(p.gpus) > 0 && p.Name == mlattr.ProblemHeldIdle {
		h := s.holder(p)
		id = []string{p.Name, cmp.Or(h.RunID, h.Name, h.Service, p.gpus[0].Key), p.gpus[0].Host}
	}
	return strings.Join(id, "\x00")
}

// holder returns the workload that had the GPU of a problem at its onset, as the record says.
func (s *Set) holder(p *problem) (h api.Holder) {
	r := p.record
	if r == nil || r.Holder == (input.Workload{}) && r.Run == "" {
		return h
	}
	h.RunID, h.Service = r.Run, cmp.Or(r.Service, r.Holder.Service)
	h.Name, h.Owner = s.Runs.Owners.Named(&r.Holder, h.Service)
	if p.Of != mlattr.OfGPU && r.Holder.Job+r.Holder.Pod+r.Holder.Container == "" {
		h.Name = "" // who runs it is no job
	}
	if of := s.Runs.Find(r.Namespace, h.Service, r.Run, r.Host); of != nil {
		h.Run, h.Service, h.Owner = of.Key, of.Service, cmp.Or(h.Owner, s.Runs.OwnerOf(of))
	}
	return h
}

// join adds the same problem of another GPU or run.
func (p *problem) join(other *problem) {
	if len(other.gpus) > 0 && !slices.Contains(p.gpus, other.gpus[0]) {
		p.gpus, p.onsets = append(p.gpus, other.gpus...), append(p.onsets, other.onsets...)
	}
	p.since = shared.Earlier(p.since, other.since)
	p.ids = append(p.ids, other.ids...)
	if !p.stale.IsZero() && (other.stale.IsZero() || other.stale.After(p.stale)) {
		p.stale = other.stale
	}
	if p.record == nil || other.record != nil && other.record.ID < p.record.ID {
		p.record = other.record
	}
	// The order of a map must not decide.
	if p.run == nil || other.run != nil && other.run.Key < p.run.Key {
		p.run, p.runID = other.run, other.runID
	}
	if cmp.Or(cmp.Compare(other.service.Name, p.service.Name), cmp.Compare(other.service.Namespace, p.service.Namespace), cmp.Compare(other.job, p.job)) < 0 {
		p.service, p.job = other.service, other.job
	}
}

// need returns the row of a problem.
func (s *Set) need(state *api.State, p *problem, now time.Time) api.Need {
	slices.SortFunc(p.gpus, gpus.Compare)
	n := api.Need{
		Kind: p.Name, Severity: string(p.Severity), Since: p.since, RunID: p.runID, Service: p.service.Name, Job: p.job,
		Team: p.service.Namespace, Evidence: []string{}, Subject: p.service.Name, NoEvidenceSince: api.TimeOf(p.stale),
	}
	if of := s.Services.All[p.service]; of != nil && p.runID == "" {
		n.Owner = s.Runs.OwnerOfService(of.Name, of.User)
	}
	subject := cmp.Or(p.runID, p.service.Name, p.host)
	if r := p.run; r != nil {
		s.ofRun(&n, r)
		n.Subject = cmp.Or(r.JobName, r.Service, r.ID)
		if p.Name != mlattr.ProblemHeldIdle && p.Name != mlattr.ProblemGPUFailed {
			n.GPUs = r.GPUKeys()
		}
	}
	if n.Subject == "" && p.host != "" {
		n.Subject = "host " + p.host
	} else if p.Of == mlattr.OfFleet {
		n.Subject = "fleet"
	}
	if p.record != nil && len(n.GPUs) == 0 {
		n.GPUs = s.heldKeys(p.record)
	}
	if len(p.gpus) > 0 {
		n.GPUs, subject = mlattr.Mapped(p.gpus, func(g *gpus.GPU) string { return g.Key }), p.gpus[0].Key
		n.Subject = placesOn(p.gpus[0].Host, mlattr.Mapped(p.gpus, func(g *gpus.GPU) string { return cmp.Or(g.Index, g.ID) })...)
	} else if p.Of == mlattr.OfGPU && p.record != nil {
		n.Subject = placesOn(p.record.Host, p.record.GPU)
	}
	h := s.holder(p)
	n.Run, n.RunID = cmp.Or(n.Run, h.Run), cmp.Or(n.RunID, h.RunID)
	n.Service, n.Owner, n.Job = cmp.Or(n.Service, h.Service), cmp.Or(n.Owner, h.Owner), cmp.Or(n.Job, h.Name)
	n.Key = api.Key("need", p.Name, p.service.Namespace, p.service.Name, subject)
	n.Simulated, n.Recorded = s.isSimulated(p, n.Service)
	n.Before = s.beforeProblem(p, &n)
	s.addEvidence(state, &n, p, now)
	if !p.stale.IsZero() {
		now = p.stale
	}
	n.GPUHours = gpuHours(p, now)
	return n
}

// ofRun says that a problem is one of a run.
func (s *Set) ofRun(n *api.Need, r *runs.Run) {
	n.Run, n.RunID, n.Service, n.Job, n.Owner, n.Team = r.Key, r.ID, r.Service, cmp.Or(r.JobName, r.Job), s.Runs.OwnerOf(r), r.Namespace
}

// isSimulated reports whether data of a problem's run, service or GPUs is simulated or
// recorded, and whether nothing but GPUs is, and these come from a recording.
func (s *Set) isSimulated(p *problem, service string) (simulated, recorded bool) {
	simulated, recorded = s.Services.Simulated[service], !s.Services.Simulated[service]
	if p.run != nil && p.run.IsSimulated() {
		simulated, recorded = true, recorded && p.run.IsRecorded()
	}
	for _, g := range p.gpus {
		if g.Simulated {
			simulated, recorded = true, recorded && g.Recorded
		}
	}
	return simulated, simulated && recorded
}

// heldKeys returns the keys of the GPUs of a record that the page knows.
func (s *Set) heldKeys(r *input.Record) (keys []string) {
	for _, held := range r.Held {
		host, id, _ := strings.Cut(held, "/")
		if g := s.GPUs.All[gpus.Ref{Host: host, ID: id}]; g != nil {
			keys = append(keys, g.Key)
		}
	}
	return keys
}

// gpuOf is between the name of a host and those of its GPUs.
const gpuOf = ": GPU "

// placesOn names GPUs of a host by their indexes, which are in order.
func placesOn(host string, names ...string) string {
	return cmp.Or(host, "unknown host") + gpuOf + api.List(api.Ranges(names, 2), 16)
}

// gpuHours returns the GPU-hours since the onset: of GPUs that have the problem, else of
// those that it keeps from work as its record says.
func gpuHours(p *problem, now time.Time) *float64 {
	sum := 0.0
	for _, onset := range p.onsets {
		sum += max(0, now.Sub(onset).Hours())
	}
	if len(p.onsets) == 0 && p.record != nil {
		sum = api.Value(p.record.GPUs) * max(0, now.Sub(p.since).Hours())
	}
	if sum <= 0 {
		return nil
	}
	return api.Finite(sum)
}

// markGPUs sets what GPUs do that have a problem, or whose run has one.
func markGPUs(state *api.State, all []*problem) {
	at := mlattr.Index(state.GPUs, func(row *api.GPU) string { return row.Key })
	for _, p := range all {
		activity, keys := p.Name, mlattr.Mapped(p.gpus, func(g *gpus.GPU) string { return g.Key })
		switch {
		case p.Name == mlattr.ProblemHostSilent:
			continue
		case p.Name == mlattr.ProblemGPUFailed:
			activity = gpus.Failed
		case p.run != nil && (p.Name == mlattr.ProblemLooksHung || p.Name == mlattr.ProblemSlow):
			keys = append(keys, p.run.GPUKeys()...)
		}
		for _, key := range keys {
			row := at[key]
			// A GPU that has failed may be read as well again before its problem ends.
			if row == nil || activity == gpus.Failed && row.Health != "" && row.Health != gpus.Failed {
				continue
			}
			row.HeldIdle = row.HeldIdle || activity == mlattr.ProblemHeldIdle
			if gpus.Worse(activity, row.Activity) {
				row.Activity = activity
			}
		}
	}
	for _, row := range at {
		if row.NoDataSince != nil {
			row.LastActivity, row.Activity = row.Activity, gpus.NoData
		}
	}
}

// addEvidence says what ml_metrics has concluded of a problem, and with it what only the
// page has: the errors of GPUs' drivers, and failures with their reproductions.
func (s *Set) addEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	if p.record == nil {
		n.Next = "Nothing else is known until its log record arrives: one comes when its evidence changes. ml_view needs the logs of ml_metrics, too."
	} else {
		n.ID, n.Value, n.Usual, n.Unit, n.Next, n.Command = p.record.ID, p.record.Value, p.record.Usual, p.record.Unit, p.record.Next, command(p.record)
		n.Evidence = append(n.Evidence, p.record.Evidence...)
		if len(p.record.Excluded) > 0 {
			n.Say("without %s", strings.Join(p.record.Excluded, ", "))
		}
	}
	switch p.Name {
	case mlattr.ProblemGPUFailed:
		if len(p.gpus) == 0 {
			return
		}
		if xid := s.GPUs.XIDs[p.gpus[0].Ref()]; xid != nil {
			n.Say("%s at %s", strings.TrimSpace("XID "+xid.Code+" "+xid.Message), api.Clock(xid.Time, now))
		}
	case mlattr.ProblemRestartLoop:
		f := mlattr.Find(state.Failures, func(f *api.Failure) bool { return n.Run != "" && f.Run == n.Run }) // the newest one
		if f != nil {
			n.Say("last failure %s in %s at %s", f.Class, cmp.Or(f.Operation, f.Service), api.Clock(api.Value(f.LastSeen), now))
			n.Command = f.Command
		}
	case mlattr.ProblemFailing:
		s.addFailures(state, n, p.since)
	}
}

// command returns the command for what a record says to do next, of numbers and an id: the
// names in the text are those that clients have sent, and a command is copied to a shell.
func command(r *input.Record) string {
	switch {
	case r.PID > 0:
		return "py-spy dump --pid " + strconv.FormatInt(r.PID, 10)
	case r.Kind == mlattr.ProblemLooksHung:
		device := ""
		if r.GPUIndex != nil {
			device = " -i " + strconv.FormatInt(*r.GPUIndex, 10)
		}
		return "nvidia-smi" + device + " --query-compute-apps=pid,name,used_memory --format=csv"
	case (r.Recovery == mlattr.RecoveryReset || r.Recovery == mlattr.RecoveryDrainAndReset) && uuid.MatchString(r.GPU):
		return "sudo nvidia-smi --gpu-reset -i " + r.GPU
	default:
		return ""
	}
}

// uuid is the form of the id of a GPU that the driver gives, or a recording.
var uuid = regexp.MustCompile(`^GPU-[0-9A-Za-z-]*$`)

// arrivalTolerance is how much earlier a failure may arrive here than where
// ml_metrics counts it.
const arrivalTolerance = 2 * time.Second

// maxClasses limits the classes of failures that evidence names.
const maxClasses = 4

// addFailures names the failures of a service since the onset, with the command of the most
// frequent ones.
func (s *Set) addFailures(state *api.State, n *api.Need, since time.Time) {
	count := func(f *api.Failure) int64 { return s.Failures.Since(f, since.Add(-arrivalTolerance)) }
	groups := mlattr.Where(slices.Values(state.Failures), func(f api.Failure) bool { return f.Service == n.Service && count(&f) > 0 })
	if len(groups) == 0 {
		return
	}
	slices.SortStableFunc(groups, func(a, b api.Failure) int { return cmp.Compare(count(&b), count(&a)) })
	classes := mlattr.Mapped(groups, func(f api.Failure) string { return f.Class + " " + strconv.FormatInt(count(&f), 10) + "×" })
	n.Say("since the onset: %s", api.List(classes, maxClasses))
	n.Command = groups[0].Command
}
