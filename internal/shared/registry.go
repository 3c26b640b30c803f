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

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Object is a shared object.
type Object interface {
	// Start starts the object. The first Start of a Use calls it, once.
	Start(ctx context.Context, host component.Host) error
	// Shutdown stops the object and waits for its goroutines or for ctx. The
	// last Shutdown of a Use calls it, once.
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

// Use is what one instance of a component has of a shared object, from Start to Shutdown.
type Use[T Object] struct {
	// Shared is the object, after Start.
	Shared T

	registry *Registry[T]
	id       component.ID
	create   func() (T, error)
	started  bool
}

// Use returns the use of the object of id by an instance. It opens nothing: the validate
// command also creates components.
func (r *Registry[T]) Use(id component.ID, create func() (T, error)) Use[T] {
	return Use[T]{registry: r, id: id, create: create}
}

// Start acquires the object. If there is none, it creates and starts one; if either fails,
// it returns the error and keeps nothing. A nil Use has no object.
func (u *Use[T]) Start(ctx context.Context, host component.Host) error {
	if u == nil {
		return nil
	}
	r := u.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[u.id]
	if !ok {
		object, err := u.create()
		if err != nil {
			return fmt.Errorf("create the shared object of %q: %w", u.id, err)
		}
		if err := object.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("start the shared object of %q: %w", u.id, err), object.Shutdown(ctx))
		}
		e = &entry[T]{object: object}
		mlattr.Put(&r.entries, u.id, e)
	}
	e.users++
	u.Shared, u.started = e.object, true
	return nil
}

// Shutdown releases the object, and shuts it down if nobody else uses it. It does nothing
// without Start, and if called again. It holds the lock, so that a Start of the same id, as
// in a reload, does not get an object that is shutting down.
func (u *Use[T]) Shutdown(ctx context.Context) error {
	if u == nil || !u.started {
		return nil
	}
	u.started = false
	u.registry.mu.Lock()
	defer u.registry.mu.Unlock()
	e := u.registry.entries[u.id]
	if e.users--; e.users > 0 {
		return nil
	}
	delete(u.registry.entries, u.id)
	return e.object.Shutdown(ctx)
}

// Await calls wait in the background, and returns nil when that has returned, or the error
// of ctx if ctx ends before.
func Await(ctx context.Context, wait func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends something once, for several callers that may be impatient. The zero value is
// ready to use.
type Stop struct {
	once sync.Once
	err  error
}

// Do calls end once, in the background, and returns its error, or that of ctx if ctx
// ends before.
func (s *Stop) Do(ctx context.Context, end func() error) error {
	if err := Await(ctx, func() { s.once.Do(func() { s.err = end() }) }); err != nil {
		return err
	}
	return s.err
}
