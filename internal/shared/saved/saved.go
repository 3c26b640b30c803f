// Package saved keeps the state of a component over restarts.
package saved

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	// ask has requests to SaveEvery.
	ask chan chan struct{}
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

// Open opens the storage extension of a component and loads what is kept, under a name that
// another State of the component has not. Later failures are passed to fail.
func Open(ctx context.Context, host component.Host, extension component.ID, kind component.Kind, owner component.ID, name string, kept Kept, fail Fail) (*State, error) {
	found, ok := host.GetExtensions()[extension]
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not among the extensions of the service`, extension)
	}
	opens, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not a storage extension, such as file_storage`, extension)
	}
	client, err := opens.GetClient(ctx, kind, owner, name)
	if err != nil {
		return nil, fmt.Errorf(`open "storage" %q: %w`, extension, err)
	}
	s := &State{client: client, kept: kept, fail: fail, ask: make(chan chan struct{})}
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

// SaveEvery saves at each interval until ctx ends, and less often if it takes more than a
// tenth of the time.
func (s *State) SaveEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			began := time.Now()
			s.Save(ctx)
			ticker.Reset(max(interval, 10*time.Since(began)))
		case saved := <-s.ask:
			s.Save(ctx)
			close(saved)
		}
	}
}

// Ahead has SaveEvery save at once, and waits for it, two seconds at most if the storage
// does not answer. What is passed on afterwards does not go back over a kill.
func (s *State) Ahead() {
	patience, saved := time.After(2*time.Second), make(chan struct{})
	select {
	case s.ask <- saved:
	case <-patience:
		return
	}
	select {
	case <-saved:
	case <-patience:
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

// maxFile limits what is read of a file, in bytes.
const maxFile = 64 << 20

// OpenFolder loads what is kept in a folder, which is created if need be, and must not be
// writable for others. A folder that cannot be used is no error, because it is usually
// not what the collector is there for: fail is told, and each save tries again.
func OpenFolder(ctx context.Context, path string, kind component.Kind, owner component.ID, name string, kept Kept, fail Fail) *State {
	file := strings.ToLower(kind.String()) + "_" + owner.Type().String()
	if owner.Name() != "" {
		// A name can have a slash.
		file += fmt.Sprintf("_%x", owner.Name())
	}
	if name != "" {
		file += "." + name
	}
	s := &State{client: &folder{path: path, name: file}, kept: kept, fail: fail, ask: make(chan chan struct{})}
	s.load(ctx)
	if err := in(path, func(*os.Root) error { return nil }); err != nil {
		s.failed(ctx, Write, err)
	}
	return s
}

// in does something in a folder.
func in(path string, do func(root *os.Root) error) error {
	root, err := Root(path)
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}

// folder is a folder with a file for each key.
type folder struct{ path, name string }

// Get returns what is kept, nothing if there is no file.
func (f *folder) Get(_ context.Context, key string) (data []byte, err error) {
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = in(f.path, func(root *os.Root) error {
		info, err := root.Lstat(f.name + "." + key)
		switch {
		case err != nil:
			return ignoreMissing(err)
		case !info.Mode().IsRegular() || info.Size() > maxFile:
			return fmt.Errorf("%q is no file of up to %d bytes", f.name+"."+key, maxFile)
		}
		data, err = root.ReadFile(f.name + "." + key)
		return err
	})
	return data, err
}

// Set writes a file, whole or not at all.
func (f *folder) Set(_ context.Context, key string, data []byte) error {
	return in(f.path, func(root *os.Root) error {
		return WriteFile(root, f.name+"."+key, 0o600, func(to io.Writer) error {
			_, err := to.Write(data)
			return err
		})
	})
}

// Delete removes a file.
func (f *folder) Delete(_ context.Context, key string) error {
	return in(f.path, func(root *os.Root) error { return ignoreMissing(root.Remove(f.name + "." + key)) })
}

// Close does nothing: each operation opens the folder.
func (*folder) Close(context.Context) error { return nil }

// Root opens a directory, which it creates if need be. It returns an error if the path
// is a link or is no directory, and if others than its owner may write to it.
func Root(directory string) (*os.Root, error) {
	path, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: create it, or name a directory that the collector's user may create", err)
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%q is a symbolic link: name the directory that it leads to", path)
	case !info.IsDir():
		return nil, fmt.Errorf("%q is not a directory", path)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%q has mode %04o, and others may write to it: chmod 0700 it", path, info.Mode().Perm())
	}
	return os.OpenRoot(path)
}

// WriteFile writes a file, whole or not at all, in place of an earlier one.
func WriteFile(root *os.Root, name string, mode os.FileMode, write func(io.Writer) error) error {
	temporary := name + ".new"
	// A link there leads elsewhere.
	if err := ignoreMissing(root.Remove(temporary)); err != nil {
		return err
	}
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(root.Remove(temporary)))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
