package anomalies

import (
	"container/heap"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// gpuInterval is the time between two readings of a host's GPUs.
const gpuInterval = time.Minute

// world is a fleet and a collector in the virtual time of a synctest bubble. It is
// not safe for concurrent use.
type world struct {
	ctx       context.Context
	seed      int64
	random    *rand.Rand
	events    events
	count     int
	collector destination
	// gpus has the hosts with GPUs, whose agents read them every gpuInterval.
	gpus  *fleet.Site
	hosts map[string]*host
	// drivers has the hosts by name.
	drivers map[string]*fleet.Host
	// spans counts those that were sent.
	spans int
}

// host is a machine whose telemetry can be cut off.
type host struct {
	cutUntil time.Time
	// sent is when it last sent something that was not cut off, and gaps are the times between
	// that last for silentAfter or longer.
	sent time.Time
	gaps []gap
}

// gap is a time without telemetry.
type gap struct{ from, until time.Time }

// silentAfter is when a host without telemetry is silent: the default of stall_timeout.
const silentAfter = 5 * time.Minute

// isSilent reports whether a host had sent nothing for so long at a time that it is right to say so,
// or until shortly before.
func (w *world) isSilent(name string, at time.Time, flush time.Duration) bool {
	h := w.hosts[name]
	return h != nil && slices.ContainsFunc(h.gaps, func(g gap) bool {
		return !at.Before(g.from.Add(silentAfter)) && !at.After(g.until.Add(flush))
	})
}

// event is what happens at a time.
type event struct {
	at time.Time
	// number orders events of the same time.
	number int
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// newWorld returns a world without runs whose collector emits every flush. The
// caller stops it.
func newWorld(ctx context.Context, seed int64, flush time.Duration) (*world, error) {
	c, err := newCollector(ctx, flush)
	if err != nil {
		return nil, err
	}
	return newWorldOf(ctx, seed, c), nil
}

// newWorldOf returns a world without runs that sends to collectors which run.
func newWorldOf(ctx context.Context, seed int64, to destination) *world {
	w := &world{ctx: ctx, seed: seed, collector: to, hosts: make(map[string]*host), drivers: make(map[string]*fleet.Host)}
	w.random = w.stream("world")
	w.gpus = fleet.NewSite("gpus", scenario.Settings{Seed: seed, Rate: 1 / gpuInterval.Seconds(), MetricsInterval: gpuInterval})
	w.every(gpuInterval, w.readGPUs)
	w.every(time.Hour, w.cutHosts)
	return w
}

// stream returns random numbers that belong to a name, so that one part of the world
// does not change another.
func (w *world) stream(name string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return rand.New(rand.NewPCG(uint64(w.seed), hash.Sum64())) //nolint:gosec // simulated data repeats for a seed
}

// in has something done after a time.
func (w *world) in(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{time.Now().Add(d), w.count, do})
}

// every has something done again and again, for the first time after d.
func (w *world) every(d time.Duration, do func()) {
	w.in(d, func() {
		do()
		w.every(d, do)
	})
}

// live has the world act for a time.
func (w *world) live(d time.Duration) {
	end := time.Now().Add(d)
	for len(w.events) > 0 && !w.events[0].at.After(end) {
		next := heap.Pop(&w.events).(event)
		if wait := time.Until(next.at); wait > 0 {
			time.Sleep(wait)
		}
		next.do()
	}
	time.Sleep(time.Until(end))
}

// addHost adds a host with GPUs.
func (w *world) addHost(name string, gpus int) []fleet.Place {
	w.hosts[name] = &host{}
	w.drivers[name] = w.gpus.AddHost(name, gpus)
	return fleet.Places(w.drivers[name])
}

func (w *world) readGPUs() {
	for _, b := range w.gpus.Step(time.Now()) {
		name, _ := b.Metrics.ResourceMetrics().At(0).Resource().Attributes().Get("host.name")
		w.send(name.Str(), b)
	}
}

// cutHosts cuts off hosts at random, each once in cutEvery.
func (w *world) cutHosts() {
	for name := range w.hosts {
		random := w.stream(name + time.Now().String())
		if random.Float64() < time.Hour.Hours()/cutEvery.Hours() {
			length := logNormal(random, cutMedian, cutSpread)
			w.in(spread(random, time.Hour), func() { w.hosts[name].cutUntil = time.Now().Add(length) })
		}
	}
}

// send sends what a host's processes have for their collector: now or later, twice
// or never.
func (w *world) send(from string, batches ...scenario.Batch) {
	if h := w.hosts[from]; h != nil {
		now := time.Now()
		if now.Before(h.cutUntil) {
			return
		}
		if !h.sent.IsZero() && now.Sub(h.sent) >= silentAfter {
			h.gaps = append(h.gaps, gap{h.sent, now})
		}
		h.sent = now
	}
	for _, b := range batches {
		if b.Signal == sentlog.SignalLogs {
			continue
		}
		if b.Signal == sentlog.SignalTraces {
			w.spans += b.Traces.SpanCount()
		}
		delay := spread(w.random, exportWait)
		switch draw := w.random.Float64(); {
		case draw < lost:
			continue
		case draw < lost+twice:
			w.in(delay+spread(w.random, time.Minute), func() { w.deliver(b) })
		case draw < lost+twice+late:
			delay += min(exponential(w.random, lateMean), lateMost)
		}
		w.in(delay, func() { w.deliver(b) })
	}
}

// deliver hands a request to the collector. While there is none, the client tries
// again.
func (w *world) deliver(b scenario.Batch) {
	if w.collector.down() {
		w.in(time.Second+spread(w.random, 5*time.Second), func() { w.deliver(b) })
		return
	}
	w.collector.consume(w.ctx, b)
}
