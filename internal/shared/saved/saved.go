// Package saved keeps the state of a component over restarts.
package saved

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// stateKey is the key of the state in the storage extension.
	stateKey = "state"
	// backupKey is the key of the last state that could not be decoded.
	backupKey = "state.backup"
)

// Kept is what outlives a restart. Export returns the same bytes if nothing has
// changed; Import returns an error if they are damaged or of a newer version.
type Kept interface {
	Export() ([]byte, error)
	Import(data []byte) error
}

// Fail is told of an operation that failed. again reports whether it failed for the
// same reason the last time.
type Fail func(ctx context.Context, operation string, err error, again bool)

// State keeps the state of a component in a storage extension, or in a folder. Only Err
// is safe for concurrent use.
type State struct {
	client interface {
		Get(ctx context.Context, key string) ([]byte, error)
		Set(ctx context.Context, key string, data []byte) error
		Delete(ctx context.Context, key string) error
		Close(ctx context.Context) error
	}
	kept Kept
	fail Fail
	// err is the error of the last operation, nil if there was none.
	err atomic.Pointer[error]
	// last is what was saved or loaded last, so that nothing is written twice.
	last []byte
	// unread reports whether the state could not be read yet. It is not
	// overwritten until it can.
	unread bool
}

// Operations of a State that can fail.
const (
	// Read failed: it is tried again before the next save.
	Read = "read"
	// Decode failed: the state is damaged or of a newer version. It is kept under
	// another key, and the component starts without it.
	Decode = "decode"
	// Encode and Write failed: the next save tries again.
	Encode = "encode"
	Write  = "write"
)

// Open opens the storage extension of a component and loads what is kept.
// Later failures are passed to fail.
func Open(ctx context.Context, host component.Host, extension component.ID, kind component.Kind, owner component.ID, kept Kept, fail Fail) (*State, error) {
	found, ok := host.GetExtensions()[extension]
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not among the extensions of the service`, extension)
	}
	opens, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not a storage extension, such as file_storage`, extension)
	}
	client, err := opens.GetClient(ctx, kind, owner, "")
	if err != nil {
		return nil, fmt.Errorf(`open "storage" %q: %w`, extension, err)
	}
	s := &State{client: client, kept: kept, fail: fail}
	s.load(ctx)
	return s, nil
}

// Err returns why nothing is kept at present, nil if it is.
func (s *State) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *State) failed(ctx context.Context, operation string, err error) {
	last := s.Err()
	s.err.Store(&err)
	s.fail(ctx, operation, err, last != nil && last.Error() == err.Error())
}

// load reads the state. What cannot be decoded is moved to backupKey.
func (s *State) load(ctx context.Context) {
	data, err := s.client.Get(ctx, stateKey)
	if s.unread = err != nil; s.unread {
		s.failed(ctx, Read, err)
		return
	}
	if len(data) == 0 {
		return
	}
	if err = s.kept.Import(data); err == nil {
		s.last = bytes.Clone(data)
		return
	}
	s.failed(ctx, Decode, err)
	if err := s.client.Set(ctx, backupKey, data); err != nil {
		s.failed(ctx, Write, err)
		return
	}
	if err := s.client.Delete(ctx, stateKey); err != nil {
		s.failed(ctx, Write, err)
	}
}

// Save writes the state if it has changed.
func (s *State) Save(ctx context.Context) {
	if s.unread {
		if s.load(ctx); s.unread {
			return
		}
	}
	data, err := s.kept.Export()
	if err != nil {
		s.failed(ctx, Encode, err)
		return
	}
	if bytes.Equal(data, s.last) && s.Err() == nil {
		return
	}
	if err := s.client.Set(ctx, stateKey, data); err != nil {
		s.failed(ctx, Write, err)
		return
	}
	s.last = data
	s.err.Store(nil)
}

// SaveEvery saves at each interval until ctx ends.
func (s *State) SaveEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Save(ctx)
		}
	}
}

// Close saves the state a last time. The context of Shutdown may have ended
// already, so it has its own.
func (s *State) Close() {
	s.Save(context.Background())
	if err := s.client.Close(context.Background()); err != nil {
		s.failed(context.Background(), Write, err)
	}
}
