// Package shared gives the traces, metrics and logs instances of one
// configured component a single object to work with. The Collector builds an
// instance for each signal; what they have in common (a store, a writer, a
// driver handle) must exist once, begin with the first that starts and end
// with the last that stops.
package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Object is what a Registry hands out.
type Object interface {
	// Start begins the object's work. It is called once, by the first
	// Acquire.
	Start(ctx context.Context, host component.Host) error
	// Shutdown ends the object's work and waits for its goroutines, or for
	// ctx. It is called once, by the last release.
	Shutdown(ctx context.Context) error
}

// Registry holds one Object per component id. The zero value is ready to use.
// A factory owns one, so that two collectors in a process share nothing.
type Registry[T Object] struct {
	mu      sync.Mutex
	entries map[component.ID]*entry[T]
}

type entry[T Object] struct {
	object T
	users  int
}

// Release gives an acquired object back. The last one shuts the object down;
// a second call by the same user does nothing.
type Release func(ctx context.Context) error

// Acquire returns the object of id. Where there is none yet, create makes it
// and Start begins it; if either fails, nothing is kept and the error is
// returned. A component calls it in its own Start, never earlier: the
// validate command builds components as well, and must not open anything.
func (r *Registry[T]) Acquire(ctx context.Context, host component.Host, id component.ID, create func() (T, error)) (T, Release, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[id]
	if !ok {
		object, err := create()
		if err != nil {
			var none T
			return none, nil, fmt.Errorf("create what the instances of %q share: %w", id, err)
		}
		if err := object.Start(ctx, host); err != nil {
			var none T
			return none, nil, errors.Join(
				fmt.Errorf("start what the instances of %q share: %w", id, err),
				object.Shutdown(ctx))
		}
		e = &entry[T]{object: object}
		if r.entries == nil {
			r.entries = make(map[component.ID]*entry[T])
		}
		r.entries[id] = e
	}
	e.users++
	var once sync.Once
	release := func(ctx context.Context) error {
		var err error
		once.Do(func() { err = r.release(ctx, id) })
		return err
	}
	return e.object, release, nil
}

// release holds the lock through Shutdown: an Acquire of the same id that
// comes meanwhile (a reload) must not find an object that is going away.
func (r *Registry[T]) release(ctx context.Context, id component.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	e.users--
	if e.users > 0 {
		return nil
	}
	delete(r.entries, id)
	return e.object.Shutdown(ctx)
}
