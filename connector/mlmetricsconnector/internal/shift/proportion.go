package shift

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// recentCount and recentTime limit what is recent; usualCount are the
	// outcomes before the newest recentCount, leastUsual the smallest number
	// from which a usual proportion is known.
	recentCount, usualCount, leastUsual = 100, 1000, 100
	recentTime                          = 15 * time.Minute
	// longTime is what larger numbers of outcomes may take if the newest quarter of them
	// shows half of it, and rareTime what the newest of the smallest number may, where few come.
	longTime, rareTime = 2 * time.Hour, 24 * time.Hour
	// rareCount is the least number of outcomes of the kind among these.
	rareCount = 6
	// certain is the greatest probability that a shift is chance. A service is
	// looked at up to 40 000 times a week, so that 300 services that are as usual
	// have a shift by chance about once a week at most; overlapping windows and
	// the exact test make it far less.
	certain = 1e-7
	// distinct is the same for the question which version of several it is.
	distinct = 1e-3
	// endFactor is the share of the limit below which a shift has ended, aloneEnd
	// that while the usual proportion is unknown, and nearFactor how far above the
	// usual proportion it may be then.
	endFactor, aloneEnd, nearFactor = 1.0 / 3, 0.5, 1.25
	// versionLeast is the least number of outcomes of one version.
	versionLeast = 10
)

// windows are the numbers of newest outcomes that are compared with those
// before: a great shift shows in few, a small one only in many.
var windows = [...]int{12, 25, 50, recentCount, 200, maxWindow}

const maxWindow = 400

// olderCount is twice the number of outcomes before those that are kept that count at least:
// a small shift is certain only against many.
const olderCount = 8000

// unseen completes usual outcomes of which fewer are of the kind: a hundred
// without any are no evidence that there never is one, and no shift can be
// certain against a hundred alone. It is a prior of one in two hundred.
var unseen = Counts{Of: 1, All: 200}

// ProportionRule says which shift of a proportion matters.
type ProportionRule struct {
	// Least is the least proportion, and Times how many times the usual one it
	// is.
	Least, Times float64
	// Count is the least number of outcomes of the kind.
	Count int
	// Alone is the least proportion, of at least AloneCount outcomes of the kind,
	// while the usual one is unknown. 0 is none.
	Alone      float64
	AloneCount int
	// Steady outcomes of the kind do not come together: each half of them has a quarter.
	Steady bool
}

// Proportion has the outcomes of the newest observations. The zero Proportion is
// ready to use. It is not safe for concurrent use.
type Proportion struct {
	// ends is a ring of at most recentCount+usualCount times, in nanoseconds
	// since 1970; the lowest bit is set if the outcome is of the kind, the next
	// three are the version. oldest is the index of its first one.
	ends   []int64
	oldest int
	all    Counts
	// older are outcomes before these, of which the oldest fade.
	older Counts
	// shifted is the last answer of Find, before the usual outcomes before that
	// began.
	shifted bool
	before  Counts
	// only is the version that alone has shifted, or 0, and rare reports whether the newest
	// outcomes are those of a day.
	only uint8
	rare bool
}

// versionBits is where an entry has its version, outcomeBits all of its bits that
// are no time.
const versionBits, outcomeBits = 1, 15

// Proportions is what a Proportion shows. A negative fraction is unknown.
type Proportions struct {
	// Recent is that of the last 100 outcomes, as far as they came within 15
	// minutes.
	Recent float64
	// Usual is that of the up to 1000 before these, at least 100. While a shift
	// lasts it is what it was before, so that the shift does not become usual.
	Usual float64
	// Shifted reports whether there is a shift, and Since when the first outcome
	// that makes it one came.
	Shifted bool
	Since   time.Time
	// Counts are those of Recent.
	Counts Counts
	// Newest is when the newest outcome came.
	Newest time.Time
	// Shown are the outcomes that show the shift, within Window: all, or those of
	// the version Only.
	Shown  Counts
	Window time.Duration
	// Last are the outcomes of Recent, or the newest 12 where these are fewer.
	Last Counts
	// ByVersion has the recent outcomes of each version. Only is the version that
	// alone has shifted, or 0.
	ByVersion [Versions]Counts
	Only      uint8
}

// Add adds an outcome that came at now.
func (p *Proportion) Add(now time.Time, is bool, version uint8) {
	end := now.UnixNano()&^outcomeBits | int64(version%Versions)<<versionBits
	if is {
		end |= 1
	}
	if len(p.ends) < recentCount+usualCount {
		p.ends = append(p.ends, end)
		p.all.Add(countOf(end))
		return
	}
	p.older.Add(countOf(p.ends[p.oldest]))
	if p.older.All >= olderCount {
		p.older = Counts{Of: (p.older.Of + 1) / 2, All: p.older.All / 2}
	}
	p.all.Of += countOf(end).Of - countOf(p.ends[p.oldest]).Of
	p.ends[p.oldest] = end
	p.oldest = (p.oldest + 1) % len(p.ends)
}

func countOf(end int64) Counts { return Counts{Of: int(end & 1), All: 1} }

func versionOf(end int64) uint8 { return uint8(end >> versionBits & (Versions - 1)) } // #nosec G115 -- three bits

func timeOf(end int64) time.Time { return time.Unix(0, end&^outcomeBits) }

// at returns the entry before age others.
func (p *Proportion) at(age int) int64 { return p.ends[(p.oldest+len(p.ends)-1-age)%len(p.ends)] }

// Find returns the proportions, and whether they have shifted by a rule. While they
// have, what is recent is so at the newest outcome: without others nothing shows that
// the shift is over.
func (p *Proportion) Find(now time.Time, rule *ProportionRule) Proportions {
	found := Proportions{Recent: -1, Usual: -1}
	if len(p.ends) > 0 {
		found.Newest = timeOf(p.at(0))
		if p.shifted && now.After(found.Newest) {
			now = found.Newest
		}
	}
	short, long, rare := now.Add(-recentTime).UnixNano(), now.Add(-longTime).UnixNano(), now.Add(-rareTime).UnixNano()
	sums := make([]Counts, 1, maxWindow+1) // of so many of the newest
	n, inTime := 0, 0
	for ; n < min(len(p.ends), maxWindow); n++ {
		end := p.at(n)
		if end <= rare || n >= windows[0] && end <= long {
			break
		}
		if end > short {
			inTime = n + 1
		}
		sum := sums[n]
		sum.Add(countOf(end))
		sums = append(sums, sum)
		if end > short || n < windows[0] {
			found.ByVersion[versionOf(end)].Add(countOf(end))
		}
	}
	for _, window := range windows {
		for _, size := range [...]int{min(window, inTime), min(window, n)} {
			later := 4 * sums[size/2].Of
			if rule.Steady && (later < sums[size].Of || later > 3*sums[size].Of) {
				continue
			}
			shows := size <= max(inTime, windows[0]) || sums[size/4].Ratio() >= rule.limit(p.usual(sums[size]).Ratio())/2
			if size > 0 && shows && !p.shifted && found.Shown.All == 0 && rule.holds(sums[size], p.longUsual(sums[size])) {
				found.Shown = sums[size]
			}
		}
	}
	recent, sum := sums[min(inTime, recentCount)], sums[max(inTime, min(n, windows[0]))]
	found.Last = sums[max(min(inTime, recentCount), min(n, windows[0]))]
	if found.Counts = recent; recent.All > 0 {
		found.Recent = recent.Ratio()
	}
	if p.rare = inTime < windows[0] && (p.rare || !p.shifted && sum.Of >= rareCount); p.rare {
		recent = sum
	} else if rule.Steady && p.shifted {
		recent = sums[n] // fewer may have none
	}
	p.conclude(recent, sum, rule, &found)
	if found.Shifted {
		count := found.Shown.All
		if own := found.Only; own != 0 && found.ByVersion[own] == found.Shown {
			count = sum.All
		}
		found.Window = now.Sub(timeOf(p.at(count - 1)))
		found.Since = p.since(count, rule.limit(found.Usual))
	}
	return found
}

// usual returns the outcomes before the newest ones, or before the shift that
// lasts.
func (p *Proportion) usual(newest Counts) Counts {
	if p.shifted {
		return p.before
	}
	return Counts{Of: p.all.Of - newest.Of, All: p.all.All - newest.All}
}

// longUsual returns the same with the older outcomes.
func (p *Proportion) longUsual(newest Counts) Counts {
	usual := p.usual(newest)
	usual.Add(p.older)
	return usual
}

// limit returns the least proportion that is a shift.
func (r *ProportionRule) limit(usual float64) float64 {
	if usual < 0 {
		return r.Alone
	}
	return max(r.Least, r.Times*usual)
}

// holds reports whether outcomes are more often of the kind than the usual ones.
func (r *ProportionRule) holds(outcomes, usual Counts) bool {
	if usual.All < leastUsual || outcomes.Of < r.Count || outcomes.Ratio() < r.limit(usual.Ratio()) {
		return false
	}
	if usual.Of*unseen.All <= usual.All*unseen.Of {
		usual.Add(unseen)
	}
	return Fisher(outcomes, usual) < certain
}

// conclude completes what is found. recent are the outcomes of found.Recent, seen
// all within the largest window.
func (p *Proportion) conclude(recent, seen Counts, rule *ProportionRule, found *Proportions) {
	usual := p.usual(recent)
	if usual.All >= leastUsual {
		found.Usual = usual.Ratio()
	}
	if recent.All == 0 {
		p.shifted = false
		return
	}
	limit := rule.limit(found.Usual)
	if own := found.ByVersion[p.only]; p.shifted && p.only != 0 && own.All > 0 {
		recent, found.Only = own, p.only
	}
	switch {
	case p.shifted && found.Usual < 0:
		found.Shifted, found.Shown = recent.Ratio() > aloneEnd*limit, recent
	case p.shifted:
		found.Shifted, found.Shown = recent.Ratio() > max(endFactor*limit, nearFactor*found.Usual), recent
	case found.Usual < 0:
		found.Shifted, found.Shown = limit > 0 && recent.Of >= rule.AloneCount && recent.Ratio() >= limit, recent
	default:
		found.Shifted = found.Shown.All > 0 || p.ofVersion(seen, rule, found)
	}
	if found.Shifted && found.Only == 0 {
		found.Only = p.onlyOf(seen, rule, found)
	}
	p.shifted, p.before, p.only = found.Shifted, usual, found.Only
}

// ofVersion reports whether one version has shifted among outcomes that as a
// whole have not, such as one that few requests go to.
func (p *Proportion) ofVersion(seen Counts, rule *ProportionRule, found *Proportions) bool {
	usual := p.longUsual(seen)
	for version := uint8(1); version < Versions; version++ {
		if own := found.ByVersion[version]; own.All >= versionLeast && rule.holds(own, usual) {
			found.Shown, found.Only = own, version
			return true
		}
	}
	return false
}

// onlyOf returns the version that alone has shifted, or 0.
func (p *Proportion) onlyOf(seen Counts, rule *ProportionRule, found *Proportions) uint8 {
	for version := uint8(1); version < Versions; version++ {
		own := found.ByVersion[version]
		others := Counts{Of: seen.Of - own.Of, All: seen.All - own.All}
		if others.All >= versionLeast && others.Ratio() < rule.limit(found.Usual) && Fisher(own, others) < distinct {
			return version
		}
	}
	return 0
}

// since returns the time of the newest outcomes of the kind from which on they
// exceed the limit most: a cumulative sum (Page, Continuous Inspection Schemes,
// 1954).
func (p *Proportion) since(newest int, limit float64) (since time.Time) {
	surplus, most := 0.0, 0.0
	since = timeOf(p.at(newest - 1))
	for age := range newest {
		surplus -= limit
		if p.at(age)&1 == 0 {
			continue
		}
		if surplus++; surplus >= most {
			most, since = surplus, timeOf(p.at(age))
		}
	}
	return since
}

// Counts are outcomes of a kind among all.
type Counts struct{ Of, All int }

// Add adds other counts.
func (c *Counts) Add(other Counts) { c.Of, c.All = c.Of+other.Of, c.All+other.All }

// Ratio returns the fraction, or 0 without observations.
func (c Counts) Ratio() float64 {
	if c.All == 0 {
		return 0
	}
	return float64(c.Of) / float64(c.All)
}

// Fisher returns the probability that recent has at least as many outcomes of the
// kind as it has, if its proportion is that of usual: the one-sided exact test of
// Fisher (The Design of Experiments, 1935). It holds for small counts.
func Fisher(recent, usual Counts) float64 {
	all, of := recent.All+usual.All, recent.Of+usual.Of
	if recent.Of <= 0 || recent.All == 0 {
		return 1
	}
	// The hypergeometric probability of exactly recent.Of, and from it the next.
	term := math.Exp(logChoose(recent.All, recent.Of) + logChoose(usual.All, usual.Of) - logChoose(all, of))
	sum := 0.0
	for i := recent.Of; i <= min(recent.All, of) && term > 0; i++ {
		sum += term
		left := of - i
		term *= float64(recent.All-i) * float64(left) / (float64(i+1) * float64(usual.All-left+1))
	}
	return min(sum, 1)
}

// Binomial returns the probability of at least k of n outcomes of the given
// probability.
func Binomial(k, n int, probability float64) float64 {
	if probability >= 1 {
		return 1
	}
	term := math.Exp(logChoose(n, k) + float64(k)*math.Log(probability) + float64(n-k)*math.Log1p(-probability))
	sum := 0.0
	for i := k; i <= n && term > 0; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1) * probability / (1 - probability)
	}
	return min(sum, 1)
}

// logChoose returns the logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

const (
	// tailLearned is the number of values from which the usual tail is learned: those above
	// all but the tailFrom highest, and by tailTimes.
	tailLearned, tailFrom = 128, 3
	// lateValues are those whose median is the middle: once it has moved, only the half of
	// them that moved it are above.
	lateValues = 15
)

var tailTimes = math.Log(1.4)

// Tail finds out whether more values than usual are far above the middle one, which may
// move. The zero Tail is ready to use. It is not safe for concurrent use.
type Tail struct {
	learned []float64
	late    [lateValues]float64
	next    int
	// middle is the median of late, and limit how far above it the tail begins.
	middle, limit float64
	// Over has whether each value was in the tail.
	Over Proportion
}

// Add adds the logarithm of a value that came at now.
func (t *Tail) Add(now time.Time, value float64, version uint8) {
	if t.limit == 0 {
		t.learn(value)
		return
	}
	t.Over.Add(now, value-t.middle > t.limit, version)
	t.late[t.next%lateValues], t.next = value, t.next+1
	late := t.late
	t.middle = shared.Median(late[:])
}

func (t *Tail) learn(value float64) {
	if t.learned = append(t.learned, value); len(t.learned) == tailLearned {
		copy(t.late[:], t.learned[tailLearned-lateValues:])
		t.middle = shared.Median(t.learned) // sorts them
		t.limit, t.learned = t.learned[tailLearned-1-tailFrom]-t.middle+tailTimes, nil
	}
}

// Limit returns the logarithm of the value from which on the tail begins.
func (t *Tail) Limit() float64 { return t.middle + t.limit }
