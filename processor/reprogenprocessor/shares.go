package reprogenprocessor

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// shares divide the artefacts that may be written over time among services.
// The ledger's lock guards them.
type shares struct {
	limit    RateLimitConfig
	all      *rate.Limiter
	services *simplelru.LRU[string, *rate.Limiter]
}

func newShares(limit RateLimitConfig) (shares, error) {
	services, err := simplelru.NewLRU[string, *rate.Limiter](maxServices, nil)
	return shares{limit: limit, all: limiter(float64(limit.PerMinute), limit.Burst), services: services}, err
}

func limiter(perMinute float64, burst int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perMinute/60), burst)
}

// take takes one from the service's share and from what belongs to all, or
// from neither. A group's first artefact may use up both; a further one must
// leave half, so that a rare failure finds something left when a frequent one
// has just had its three.
func (s *shares) take(service string, first bool, now time.Time) bool {
	own, ok := s.services.Get(service)
	if !ok {
		own = limiter(float64(s.limit.PerMinute)/2, max(1, s.limit.Burst/2))
		s.services.Add(service, own)
	}
	for _, share := range [...]*rate.Limiter{own, s.all} {
		keep := 0.0
		if !first {
			keep = float64(share.Burst()) / 2
		}
		if share.TokensAt(now) < 1+keep {
			return false
		}
	}
	return own.AllowN(now, 1) && s.all.AllowN(now, 1)
}
