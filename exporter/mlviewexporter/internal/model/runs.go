package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// States of a run, the values of ml.run.state.
const (
	stateRunning = "running"
	stateStalled = "stalled"
	stateSilent  = "silent"
	stateEnded   = "ended"
	stateUnknown = "unknown"
)

// runID identifies a run: its id within one service.
type runID struct{ namespace, service, id string }

// run is a run and its ranks.
type run struct {
	runID
	key       string
	firstSeen time.Time
	lastSeen  time.Time

	job, jobName, user, version string
	simulated                   bool

	ranks map[string]*rank
	// streams are those of metrics that name the run, states those of its state.
	// whole counts those of other series of the whole run.
	streams, states []*stream
	whole           [seriesCount]uint16

	// attempts is the largest number of attempts so far. hosts are those of all,
	// added those to which ranks have moved, and when.
	attempts float64
	hosts    map[string]bool
	added    map[string]time.Time

	// state is the last known state.
	state      string
	checkpoint time.Time
	curves     curves

	// gpus are the GPUs that the run holds, by the last State.
	gpus []heldGPU
	// needs are the kinds of its problems, by the last State. slowSince is the
	// onset of its last slowness.
	needs     []string
	slowSince time.Time
	// slowNoted is when it was noted.
	slowNoted time.Time
}

// heldGPU is a GPU of a run.
type heldGPU struct {
	gpu    *gpu
	rank   string
	memory float64
	// share is 1, or less if other runs use the GPU as well.
	share float64
}

// rank is one process of a run.
type rank struct {
	name, host string
	pid        int64
	// span is the phase or operation of the span that ended last.
	span  string
	ended int64
	// lastStep is when its last step ended, in Unix seconds.
	lastStep float64
}

// runOf returns a run, which it adds if there is room, else nil.
func (s *Store) runOf(namespace, service, id string, now time.Time) *run {
	key := runID{namespace, service, id}
	if known := s.runs[key]; known != nil {
		return known
	}
	if service == "" {
		// The first series of a run that holds GPUs can come before its service.
		if known := s.runWithID(id, "", ""); known != nil {
			return known
		}
	} else if nameless := s.runs[runID{id: id}]; nameless != nil {
		s.removeRun(nameless)
	}
	key = runID{s.texts.of(namespace), s.texts.of(service), s.texts.of(id)}
	if known := s.runs[key]; known != nil {
		return known
	}
	hash := keyOf("run", key.namespace, key.service, key.id)
	if len(s.runs) >= s.settings.MaxRuns && !s.replaceRun(now) {
		s.refuse("runs", hash, now)
		return nil
	}
	delete(s.refused["runs"], hash)
	one := &run{
		runID: key, key: hash, firstSeen: now, lastSeen: now, state: stateUnknown,
		ranks: make(map[string]*rank), hosts: make(map[string]bool), added: make(map[string]time.Time),
	}
	s.runs[key], s.byKey[hash] = one, one
	clear(s.withID)
	s.runsByID[key.id] = append(s.runsByID[key.id], one)
	return one
}

// attach adds a stream, and reports whether there is room for it.
func (r *run) attach(one *stream) bool {
	if len(r.streams) >= maxStreamsOfRun {
		return false
	}
	if one.series.ofWholeRun() {
		if r.whole[one.series] >= maxStreamsOfWhole || one.series == RunState && severity(one.labels.Own[0]) <= 0 {
			return false
		}
		r.whole[one.series]++
	}
	if one.series == RunState {
		r.states = append(r.states, one)
	}
	r.streams = append(r.streams, one)
	return true
}

// searchAgain is when a run that can be replaced is looked for again.
const searchAgain = time.Second

// replaceRun removes the run that matters least: the ended one that was seen
// longest ago, else such a silent or unknown one. A run that takes steps or looks
// hung is never removed.
func (s *Store) replaceRun(now time.Time) bool {
	if now.Sub(s.vain).Abs() < searchAgain {
		return false
	}
	var least *run
	turn := 0
	for _, one := range s.runs {
		if r := one.removable(now); r != 0 && (least == nil || cmp.Or(cmp.Compare(r, turn), one.lastSeen.Compare(least.lastSeen)) < 0) {
			least, turn = one, r
		}
	}
	if least == nil {
		s.vain = now
		return false
	}
	s.refuse("runs", least.key, now)
	s.removeRun(least)
	return true
}

// replaceStreams removes the run with most streams among those that may leave, if
// it has more of them than the run that needs one.
func (s *Store) replaceStreams(of *Labels, now time.Time) bool {
	if now.Sub(s.full).Abs() < searchAgain {
		return false
	}
	own := s.runs[runID{of.Namespace, of.Service, of.Run}]
	if own != nil && len(own.streams) >= maxStreamsOfRun {
		return false
	}
	var most *run
	for _, one := range s.runs {
		if one.removable(now) != 0 && (most == nil || cmp.Or(cmp.Compare(len(most.streams), len(one.streams)), one.lastSeen.Compare(most.lastSeen)) < 0) {
			most = one
		}
	}
	if most == nil {
		s.full = now
		return false
	}
	if own != nil && len(own.streams) >= len(most.streams) {
		return false
	}
	s.refuse("runs", most.key, now)
	s.removeRun(most)
	return true
}

// replaceRanks forgets the ranks of the run that may leave and was seen longest
// ago.
func (s *Store) replaceRanks(now time.Time) bool {
	if now.Sub(s.fullRanks).Abs() < searchAgain {
		return false
	}
	var oldest *run
	for _, one := range s.runs {
		if len(one.ranks) > 0 && one.removable(now) != 0 && (oldest == nil || one.lastSeen.Before(oldest.lastSeen)) {
			oldest = one
		}
	}
	if oldest == nil {
		s.fullRanks = now
		return false
	}
	s.allRanks -= len(oldest.ranks)
	clear(oldest.ranks)
	return true
}

// removable is 0 for a run that must stay, else its turn to leave.
func (r *run) removable(now time.Time) int {
	switch r.currentState(now) {
	case stateEnded:
		return 1
	case stateSilent:
		return 2
	case stateUnknown:
		// Spans can name any number of runs; of a real one ml_metrics has series.
		if len(r.streams) == 0 || now.Sub(r.lastSeen) > goneAfter {
			return 3
		}
	}
	return 0
}

func (s *Store) removeRun(r *run) {
	owners := make(map[any]bool)
	for _, one := range r.streams {
		s.streams.remove(one)
		one.removed = true
		owners[one.owner] = true
	}
	removed := func(one *stream) bool { return one.removed }
	for owner := range owners {
		switch of := owner.(type) {
		case *modelUse:
			of.streams = slices.DeleteFunc(of.streams, removed)
		case *service:
			of.streams = slices.DeleteFunc(of.streams, removed)
		}
	}
	s.allRanks -= len(r.ranks)
	clear(s.withID)
	delete(s.runs, r.runID)
	delete(s.byKey, r.key)
	others := slices.DeleteFunc(s.runsByID[r.id], func(other *run) bool { return other == r })
	if len(others) == 0 {
		delete(s.runsByID, r.id)
	} else {
		s.runsByID[r.id] = others
	}
	s.history.forget(r)
}

// nowhere is the key of the process of a run of which neither rank nor host is
// known.
const nowhere = "host "

// rankOf returns a rank of the run. Without a rank the host stands for it. It
// returns nil if there are too many, and for a process that may be any of them.
func (s *Store) rankOf(r *run, name, host string) *rank {
	key := name
	if key == "" {
		key = "host " + host
	}
	one := r.ranks[key]
	if one != nil || len(r.ranks) >= maxRanks {
		return one
	}
	if key == nowhere && len(r.ranks) > 0 {
		if len(r.ranks) == 1 {
			for _, only := range r.ranks {
				return only
			}
		}
		return nil
	}
	if s.allRanks >= maxAllRanks && !s.replaceRanks(s.arrived) {
		s.dropped["ranks"]++
		return nil
	}
	if r.ranks[nowhere] != nil {
		delete(r.ranks, nowhere)
		s.allRanks--
	}
	one = &rank{name: name, host: host}
	r.ranks[key] = one
	s.allRanks++
	return one
}

// processes returns the ranks of the run. Processes without a rank count only if
// none has one: they start the others.
func (r *run) processes() []*rank {
	all := make([]*rank, 0, len(r.ranks))
	named := false
	for _, one := range r.ranks {
		named = named || one.name != ""
		all = append(all, one)
	}
	if named {
		all = slices.DeleteFunc(all, func(one *rank) bool { return one.name == "" })
	}
	return all
}

// processCount returns the number of processes.
func (r *run) processCount() int {
	named := 0
	for _, one := range r.ranks {
		if one.name != "" {
			named++
		}
	}
	if named > 0 {
		return named
	}
	return len(r.ranks)
}

// touchRun takes over what a point of a run says besides its value.
func (s *Store) touchRun(one *stream, now time.Time) {
	r, l := one.run, &one.labels
	r.lastSeen = now
	r.simulated = r.simulated || one.simulated
	if l.Job != "" {
		r.job = l.Job
	}
	// The series of a whole run have neither rank nor host.
	if l.Rank != "" || l.Host != "" {
		rank := s.rankOf(r, l.Rank, l.Host)
		// Series of an earlier host stay for a while.
		if rank != nil && (rank.host == "" || one.series == LastStep && one.value > rank.lastStep) {
			rank.lastStep = max(rank.lastStep, one.value)
			s.moveRank(r, rank, l.Host, now)
		}
	}
	switch one.series {
	case RunAttempts:
		s.noteAttempts(r, one.value, now)
	case RunState:
		s.noteState(r, now)
	}
	s.history.due(r, now)
}

// currentState returns the state of a run by ml_metrics. If several collectors
// report it, the first of them by severity counts.
func (r *run) currentState(now time.Time) string {
	worst := ""
	for _, one := range r.states {
		if one.value == 1 && one.live(now) {
			if state := one.labels.Own[0]; severity(state) > severity(worst) || worst == "" {
				worst = state
			}
		}
	}
	if worst != "" {
		return worst
	}
	// Its series have ended.
	if r.state == stateEnded || r.state == stateSilent {
		return r.state
	}
	return stateUnknown
}

// severity orders states as ml_metrics orders those of the ranks of a run. It is
// not positive for anything else.
func severity(state string) int {
	return slices.Index([]string{"", stateEnded, stateUnknown, stateSilent, stateRunning, stateStalled}, state)
}

// row returns the row of a run.
func (s *Store) runRow(r *run, now time.Time) Run {
	row := Run{
		Key: r.key, ID: r.id, Service: r.service, Team: r.namespace,
		Job: cmp.Or(r.jobName, r.job), Owner: s.ownerOf(r),
		State: r.currentState(now), Needs: r.needs,
		FirstSeen: r.firstSeen.UTC(), LastSeen: r.lastSeen.UTC(),
		Ranks: r.processCount(), Version: r.version, Simulated: r.simulated,
		LastCheckpoint: timePointer(r.checkpoint),
		Hosts:          r.hostNames(),
	}
	r.addNumbers(&row, now)
	r.addGPUs(&row)
	r.explain(&row)
	return row
}

func (r *run) hostNames() []string {
	hosts := make(map[string]bool)
	for _, one := range r.ranks {
		if one.host != "" {
			hosts[one.host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// addGPUs adds the GPUs of a run.
func (r *run) addGPUs(row *Run) {
	for _, held := range r.gpus {
		row.GPUKeys = append(row.GPUKeys, held.gpu.key)
		row.Simulated = row.Simulated || held.gpu.simulated
	}
}

// ownerOf returns the owner of a run: its user, else that of its GPUs' workloads.
func (s *Store) ownerOf(r *run) string {
	if r.user != "" {
		return s.owner(r.user)
	}
	for _, held := range r.gpus {
		if user := held.gpu.userOf(r.id); user != "" {
			return s.owner(user)
		}
	}
	return ""
}

// explain says what would give numbers that are missing.
func (r *run) explain(row *Run) {
	if row.TokenRate == nil && row.Steps != nil && row.Tokens == nil {
		row.why("token_rate", "Nobody sends the tokens of a step (ml.tokens_per_step). Set "+fixStepTokens(row.Service))
	}
}

// why says why a number is missing.
func (row *Run) why(number, reason string) {
	if row.Why == nil {
		row.Why = make(map[string]string)
	}
	row.Why[number] = reason
}

// sums collects the numbers of a run from its streams.
type sums struct {
	steps, batches, samples, tokens, errors, attempts total
	stepRate, batchRate, sampleRate, tokenRate        total
	epoch, learningRate, loss, lastStep               total

	lossIsNoNumber bool
}

// total is the sum and the largest of some numbers.
type total struct {
	sum, most float64
	n         int
}

func (t *total) add(v float64) {
	if t.n == 0 || v > t.most {
		t.most = v
	}
	t.sum += v
	t.n++
}

func (t *total) addRate(one *stream, now time.Time) {
	if rate, ok := one.rate(now); ok {
		t.add(rate)
	}
}

func (t total) largest() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.most)
}

func (t total) all() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.sum)
}

func (t total) mean() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.sum / float64(t.n))
}

// addNumbers adds what metrics say of a run.
func (r *run) addNumbers(row *Run, now time.Time) {
	var all sums
	scope := r.lossScope(now)
	side := r.tokenSide()
	for _, one := range r.streams {
		all.addTotal(one, side, now)
		if one.series == Loss && one.noNumber && now.Sub(one.at) <= goneAfter {
			all.lossIsNoNumber = true
		}
		if !one.live(now) {
			continue
		}
		switch one.series {
		case Epoch:
			all.epoch.add(one.value)
		case LearningRate:
			all.learningRate.add(one.value)
		case Loss:
			if one.labels.Own == scope {
				all.loss.add(one.value)
			}
		}
		r.addSeries(row, one)
	}
	row.Steps, row.StepRate = all.steps.largest(), all.stepRate.largest()
	if row.Steps == nil {
		row.Steps, row.StepRate = all.batches.largest(), all.batchRate.largest()
	}
	row.Samples, row.SampleRate = all.samples.all(), all.sampleRate.all()
	row.Tokens, row.TokenRate = all.tokens.all(), all.tokenRate.all()
	row.Errors, row.Attempts = all.errors.all(), all.attempts.largest()
	row.Epoch, row.LearningRate = all.epoch.largest(), all.learningRate.mean()
	if row.Loss = all.loss.mean(); row.Loss != nil {
		row.LossScope = scope[0]
	}
	if all.lossIsNoNumber {
		row.Loss = nil
		row.why("loss", "The loss is not a finite number (NaN).")
	}
	if at, ok := unix(all.lastStep.most); ok {
		row.LastStep = &at
	}
	r.addBasis(row, now)
}

// addTotal adds what also counts after the stream has ended.
func (all *sums) addTotal(one *stream, side string, now time.Time) {
	switch one.series {
	case Steps:
		all.steps.add(one.value)
		all.stepRate.addRate(one, now)
	case Batches:
		all.batches.add(one.value)
		all.batchRate.addRate(one, now)
	case Samples:
		all.samples.add(one.value)
		all.sampleRate.addRate(one, now)
	case Tokens:
		if side == "" || one.labels.Own[4] == side || one.labels.Own[4] == "" {
			all.tokens.add(one.value)
			all.tokenRate.addRate(one, now)
		}
	case Errors:
		all.errors.add(one.value)
	case RunAttempts:
		all.attempts.add(one.value)
	case LastStep:
		all.lastStep.add(one.value)
	}
}

// addSeries adds the series that ml_metrics computes for a whole run.
func (r *run) addSeries(row *Run, one *stream) {
	own := one.labels.Own[0]
	switch one.series {
	case RunStateSince:
		if at, ok := unix(one.value); ok && (row.StateSince == nil || at.After(*row.StateSince)) {
			row.StateSince = &at
		}
	case RunGoodput:
		row.Goodput = finite(one.value)
	case RunBound:
		if one.value == 1 {
			row.Bound = own
		}
	case RunGPUs:
		row.GPUs = finite(one.value)
	case RunGPUUtilization:
		row.GPUUtilization = finite(one.value)
	case RunStepTime:
		switch own {
		case windowRecent:
			row.StepTime = finite(one.value)
		case windowUsual:
			row.StepTimeUsual = finite(one.value)
		}
	}
}

// Values of ml.window.
const (
	windowRecent = "recent"
	windowUsual  = "usual"
)

// lossScope returns the own labels of the loss to show: that of a batch before
// that of an epoch or a validation, and that of all tasks before that of one.
func (r *run) lossScope(now time.Time) (best [MaxOwn]string) {
	turn := func(own [MaxOwn]string) (int, string, string) {
		at := slices.Index([]string{"batch", "epoch", "validation"}, own[0])
		if at < 0 {
			at = 3
		}
		return at, own[1], own[0]
	}
	found := false
	for _, one := range r.streams {
		if one.series != Loss || !one.live(now) {
			continue
		}
		own := one.labels.Own
		a, taskA, scopeA := turn(own)
		b, taskB, scopeB := turn(best)
		less := cmp.Or(cmp.Compare(taskA, taskB), cmp.Compare(a, b), cmp.Compare(scopeA, scopeB)) < 0
		if !found || less {
			best, found = own, true
		}
	}
	return best
}

// tokenSide returns the side whose tokens count, if client and server report the
// same ones, else "".
func (r *run) tokenSide() string { return sideOf(r.streams) }

func sideOf(streams []*stream) string {
	for _, one := range streams {
		if one.series == Tokens && one.labels.Own[4] == "server" {
			return "server"
		}
	}
	return ""
}

// addBasis says what the rate of tokens rests on. If no span reports tokens, it
// is the client's own rate.
func (r *run) addBasis(row *Run, now time.Time) {
	if row.TokenRate != nil {
		row.TokenBasis = "counter"
		return
	}
	if row.Tokens != nil {
		return
	}
	var rates total
	for _, one := range r.streams {
		if one.series != ClientThroughput || !one.live(now) {
			continue
		}
		// Means of several series must not be added up.
		if basis := one.labels.Own[2]; basis != "mean" || rates.n == 0 {
			rates.add(one.value)
			row.TokenBasis = cmp.Or(basis, "reported")
		}
	}
	row.TokenRate = rates.all()
}

// Run returns the detail of the run with a key. It is kept as long as the State and
// must not be changed.
func (s *Store) Run(key string) (*RunDetail, bool) {
	state := s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byKey[key]
	if r == nil {
		return nil, false
	}
	if s.detailsOf != state || len(s.details) >= maxDetails {
		s.details, s.detailsOf = make(map[string]*RunDetail), state
	}
	if known := s.details[key]; known != nil {
		return known, true
	}
	now := s.settings.Now()
	detail := &RunDetail{Run: s.runRow(r, now), Needs: []Need{}}
	for _, need := range state.Needs {
		if need.Run == key {
			detail.Needs = append(detail.Needs, need)
		}
	}
	detail.Ranks, detail.MissingRanks = r.rankRows()
	detail.Phases = r.phases(now)
	detail.TimeRatio = r.timeRatio(now)
	detail.Curves = r.curves.rows(now)
	detail.Marks = s.marksOf(r)
	detail.Calls = s.calls.rows(s, func(c *call) bool { return c.run == key })
	detail.Failures = s.failures.rows(s, func(f *Failure) bool { return f.Run == key })
	detail.Traces = s.traces.ofRun(s, key)
	detail.MakeLists()
	s.details[key] = detail
	return detail, true
}

// maxDetails limits the details that are kept for an interval.
const maxDetails = 64

// rankRows returns the ranks of a run in order, and those below the largest that
// sent nothing.
func (r *run) rankRows() (rows []Rank, missing []string) {
	byName := make(map[string]*Rank, len(r.ranks))
	processes := r.processes()
	rows = make([]Rank, 0, len(processes))
	for _, one := range processes {
		row := Rank{Rank: one.name, Host: one.host, LastSpan: one.span}
		if one.ended > 0 {
			row.LastSpanTime = timePointer(time.Unix(0, one.ended))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Rank) int {
		return cmp.Or(compareRanks(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host))
	})
	for i := range rows {
		if rows[i].Rank != "" {
			byName[rows[i].Rank] = &rows[i]
		} else {
			byName["host "+rows[i].Host] = &rows[i]
		}
	}
	for _, one := range r.streams {
		name := one.labels.Rank
		if name == "" {
			name = "host " + one.labels.Host
		}
		row := byName[name]
		if row == nil {
			continue
		}
		switch one.series {
		case Steps, Batches:
			if row.Steps == nil || *row.Steps < one.value {
				row.Steps = finite(one.value)
			}
		case LastStep:
			if at, ok := unix(one.value); ok && (row.LastStep == nil || at.After(*row.LastStep)) {
				row.LastStep = &at
			}
		}
	}
	gpus := r.gpusOfRanks()
	for i := range rows {
		if held := gpus.of(&rows[i]); held != nil {
			rows[i].GPU, rows[i].GPUIndex = held.gpu.key, held.gpu.index
			rows[i].Utilization, rows[i].Power = held.gpu.number(GPUUtilization), held.gpu.number(GPUPower)
		}
	}
	return rows, missingRanks(rows)
}

// gpusOfRanks finds the GPUs of ranks.
type gpusOfRanks struct {
	byRank map[string]*heldGPU
	// onHost has the GPU of a host, nil if it has several; ranks counts the ranks
	// there.
	onHost map[string]*heldGPU
	ranks  map[string]int
}

func (r *run) gpusOfRanks() gpusOfRanks {
	g := gpusOfRanks{make(map[string]*heldGPU), make(map[string]*heldGPU), make(map[string]int)}
	for i := range r.gpus {
		held := &r.gpus[i]
		if held.rank != "" && g.byRank[held.rank] == nil {
			g.byRank[held.rank] = held
		}
		if _, several := g.onHost[held.gpu.host]; several {
			held = nil
		}
		g.onHost[r.gpus[i].gpu.host] = held
	}
	for _, one := range r.ranks {
		g.ranks[one.host]++
	}
	return g
}

// of returns the GPU of a rank: that of its workload, else the only one of its
// host if no other rank of the run is there.
func (g *gpusOfRanks) of(row *Rank) *heldGPU {
	if held := g.byRank[row.Rank]; held != nil {
		return held
	}
	if held := g.onHost[row.Host]; held != nil && held.rank == "" && g.ranks[row.Host] == 1 {
		return held
	}
	return nil
}

// compareRanks orders ranks as numbers, and others behind them.
func compareRanks(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}

// maxMissingRanks limits the list of missing ranks.
const maxMissingRanks = 256

// missingRanks returns the ranks between 0 and the largest that are not in rows.
func missingRanks(rows []Rank) (missing []string) {
	next := 0
	for _, row := range rows {
		n, err := strconv.Atoi(row.Rank)
		if err != nil || n < 0 || n > maxRanks {
			continue
		}
		for ; next < n && len(missing) < maxMissingRanks; next++ {
			missing = append(missing, strconv.Itoa(next))
		}
		next = n + 1
	}
	return missing
}

// timeRatio returns ml.run.time.ratio.
func (r *run) timeRatio(now time.Time) map[string]float64 {
	ratio := make(map[string]float64)
	for _, one := range r.streams {
		if one.series == RunTimeRatio && one.live(now) {
			ratio[one.labels.Own[0]] = one.value
		}
	}
	if len(ratio) == 0 {
		return nil
	}
	return ratio
}
