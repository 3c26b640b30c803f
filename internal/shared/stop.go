package shared

import (
	"context"
	"sync"
)

// Stop ends something once, for several callers that may be impatient. The zero value is
// ready to use.
type Stop struct {
	once  sync.Once
	ended chan struct{}
	err   error
}

// Do calls end once, in the background, and returns its error, or that of ctx if ctx
// ends before.
func (s *Stop) Do(ctx context.Context, end func() error) error {
	s.once.Do(func() {
		s.ended = make(chan struct{})
		go func() {
			defer close(s.ended)
			s.err = end()
		}()
	})
	select {
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
