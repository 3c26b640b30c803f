// Package shared provides one object for the traces, metrics and logs instances
// of a configured component. The Collector creates an instance for each signal.
// A store, a writer or a driver handle must exist only once: it starts with the
// first instance and shuts down with the last.
package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Object is a shared object.
type Object interface {
	// Start starts the object. The first Acquire calls it, once.
	Start(ctx context.Context, host component.Host) error
	// Shutdown stops the object and waits for its goroutines or for ctx. The
	// last Release calls it, once.
	Shutdown(ctx context.Context) error
}

// Registry holds one Object per component id. The zero value is ready to use.
// Each factory has its own, so that two collectors in one process do not share
// objects.
type Registry[T Object] struct {
	mu      sync.Mutex
	entries map[component.ID]*entry[T]
}

type entry[T Object] struct {
	object T
	users  int
}

// Release returns an acquired object. The last Release shuts the object down.
// Further calls of the same Release do nothing.
type Release func(ctx context.Context) error

// Acquire returns the object of id. If there is none, it creates and starts
// one; if either fails, it returns the error and keeps nothing. A component
// must call it in Start and not earlier, because the validate command also
// creates components and must not open anything.
func (r *Registry[T]) Acquire(ctx context.Context, host component.Host, id component.ID, create func() (T, error)) (none T, _ Release, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[id]
	if !ok {
		object, err := create()
		if err != nil {
			return none, nil, fmt.Errorf("create the shared object of %q: %w", id, err)
		}
		if err := object.Start(ctx, host); err != nil {
			return none, nil, errors.Join(
				fmt.Errorf("start the shared object of %q: %w", id, err),
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

// Use is what one instance of a component has of a shared object, from Start to Shutdown.
type Use[T Object] struct {
	// Shared is the object, after Start.
	Shared T

	registry *Registry[T]
	id       component.ID
	create   func() (T, error)
	release  Release
}

// Use returns the use of the object of id by an instance, as Acquire gives it.
func (r *Registry[T]) Use(id component.ID, create func() (T, error)) Use[T] {
	return Use[T]{registry: r, id: id, create: create}
}

// Start acquires the object.
func (u *Use[T]) Start(ctx context.Context, host component.Host) (err error) {
	u.Shared, u.release, err = u.registry.Acquire(ctx, host, u.id, u.create)
	return err
}

// Shutdown releases the object. It does nothing without Start.
func (u *Use[T]) Shutdown(ctx context.Context) error {
	return component.ShutdownFunc(u.release).Shutdown(ctx)
}

// release holds the lock during Shutdown, so that an Acquire of the same id, as
// in a reload, does not get an object that is shutting down.
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
