package pace

import "time"

const (
	// recentRequests is the number of newest requests that are recent if they
	// came within recentTime.
	recentRequests = 100
	recentTime     = 15 * time.Minute
	// usualRequests is the number of requests before these that are usual, and
	// leastUsualRequests the smallest number from which a usual ratio is known.
	usualRequests, leastUsualRequests = 1000, 100
	// leastFailed is the number of recent requests that must have failed, so
	// that a single error of a service with little traffic is no problem.
	leastFailed = 3
	// failingRatio is the least ratio of a failing service, failingTimes how
	// many times its usual ratio it is, and failingAlone the least ratio while
	// the usual one is unknown. leastUsualRatio is the usual ratio of a service
	// of which no request failed.
	failingRatio, failingTimes, failingAlone = 0.05, 3, 0.5
	leastUsualRatio                          = 0.001
)

// Requests has the outcomes of the newest requests of a service. The zero
// Requests is ready to use. It is not safe for concurrent use.
type Requests struct {
	// ends is a ring of at most recentRequests+usualRequests times, in
	// nanoseconds since 1970, whose lowest bit is set if the request failed;
	// oldest is the index of its first one.
	ends   []int64
	oldest int
	// failing is the last answer of Ratios, before the usual ratio before that
	// began.
	failing bool
	before  float64
}

// ErrorRatios are fractions of requests that failed; a negative one is unknown.
type ErrorRatios struct {
	// Recent is that of the last 100 requests, as far as they came within 15
	// minutes.
	Recent float64
	// Usual is that of the up to 1000 requests before these, at least 100. While
	// the service fails it is what it was before, so that failures do not become
	// usual.
	Usual float64
	// Failing reports whether the recent ratio is a problem: at least 0.05 and 3
	// times the usual one, of which 0 counts as 0.001, or at least 0.5 if that
	// is unknown; and at least 3 requests failed.
	Failing bool
	// Since is when the first of the failures that make it one came.
	Since time.Time
}

// Add adds a request that came at now.
func (r *Requests) Add(now time.Time, failed bool) {
	end := now.UnixNano() &^ 1
	if failed {
		end |= 1
	}
	if len(r.ends) < recentRequests+usualRequests {
		r.ends = append(r.ends, end)
		return
	}
	r.ends[r.oldest] = end
	r.oldest = (r.oldest + 1) % len(r.ends)
}

// Newest returns when the newest request came.
func (r *Requests) Newest() time.Time {
	if len(r.ends) == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.at(0))
}

// at returns the entry of the request before age others.
func (r *Requests) at(age int) int64 {
	return r.ends[(r.oldest+len(r.ends)-1-age)%len(r.ends)]
}

// Ratios returns the fractions of the requests that failed.
func (r *Requests) Ratios(now time.Time) ErrorRatios {
	ratios := ErrorRatios{Recent: -1, Usual: -1}
	after := now.Add(-recentTime).UnixNano()
	recent, failed := 0, 0
	for recent < min(recentRequests, len(r.ends)) && r.at(recent) > after {
		failed += int(r.at(recent) & 1)
		recent++
	}
	if usual := len(r.ends) - recent; usual >= leastUsualRequests {
		usual = min(usual, usualRequests)
		sum := 0
		for age := recent; age < recent+usual; age++ {
			sum += int(r.at(age) & 1)
		}
		ratios.Usual = float64(sum) / float64(usual)
	}
	if recent == 0 {
		r.failing = false
		return ratios
	}
	if r.failing {
		ratios.Usual = r.before
	}
	ratios.Recent = float64(failed) / float64(recent)
	limit := failingAlone
	if ratios.Usual >= 0 {
		limit = max(failingRatio, failingTimes*max(ratios.Usual, leastUsualRatio))
	}
	if failed >= leastFailed && ratios.Recent >= limit {
		ratios.Failing, ratios.Since = true, r.since(recent, limit)
	}
	r.failing, r.before = ratios.Failing, ratios.Usual
	return ratios
}

// since returns the time of the recent failure from which on the failures exceed
// limit most.
func (r *Requests) since(recent int, limit float64) (since time.Time) {
	surplus, most := 0.0, 0.0
	for age := range recent {
		surplus -= limit
		if r.at(age)&1 == 0 {
			continue
		}
		if surplus++; surplus >= most {
			most, since = surplus, time.Unix(0, r.at(age))
		}
	}
	return since
}
