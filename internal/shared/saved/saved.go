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
	"syscall"
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

// Place is where a component keeps states. Without an extension and a directory, it keeps
// none.
type Place struct {
	// Kind and Owner are those of the component.
	Kind  component.Kind
	Owner component.ID
	// Storage is the extension that keeps states, nil without one.
	Storage *component.ID
	// Directory is the folder that keeps them, if no extension does. It is created if need
	// be, and must not be writable for others.
	Directory string
}

// Load opens the place and loads what is kept, under a name that another State of the
// component has not. It returns nil if the place keeps nothing. Later failures are passed to
// fail. So is that of a folder that cannot be used, because it is usually not what the
// collector is there for, and each save tries again.
func (p Place) Load(ctx context.Context, host component.Host, name string, kept Kept, fail Fail) (*State, error) {
	s := &State{kept: kept, fail: fail, ask: make(chan chan struct{})}
	switch {
	case p.Storage != nil:
		found, ok := host.GetExtensions()[*p.Storage]
		if !ok {
			return nil, fmt.Errorf(`"storage" is %q, which is not among the extensions of the service`, p.Storage)
		}
		opens, ok := found.(storage.Extension)
		if !ok {
			return nil, fmt.Errorf(`"storage" is %q, which is not a storage extension, such as file_storage`, p.Storage)
		}
		client, err := opens.GetClient(ctx, p.Kind, p.Owner, name)
		if err != nil {
			return nil, fmt.Errorf(`open "storage" %q: %w`, p.Storage, err)
		}
		s.client = client
		s.load(ctx)
	case p.Directory != "":
		s.client = &folder{path: p.Directory, name: p.file(name)}
		s.load(ctx)
		if err := in(p.Directory, func(*os.Root) error { return nil }); err != nil {
			s.failed(ctx, Write, err)
		}
	default:
		return nil, nil //nolint:nilnil // nothing is kept
	}
	return s, nil
}

// file returns the name of the files of a state.
func (p Place) file(name string) string {
	file := strings.ToLower(p.Kind.String()) + "_" + p.Owner.Type().String()
	if p.Owner.Name() != "" {
		// A name can have a slash.
		file += fmt.Sprintf("_%x", p.Owner.Name())
	}
	if name != "" {
		file += "." + name
	}
	return file
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
	if err = s.client.Set(ctx, backupKey, data); err == nil {
		err = s.client.Delete(ctx, stateKey)
	}
	if err != nil {
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
		data, err = ReadFile(root, f.name+"."+key, maxFile)
		return IgnoreMissing(err)
	})
	return data, err
}

// Set writes a file, whole or not at all.
func (f *folder) Set(_ context.Context, key string, data []byte) error {
	return in(f.path, func(root *os.Root) error { return WriteBytes(root, f.name+"."+key, data) })
}

// Delete removes a file.
func (f *folder) Delete(_ context.Context, key string) error {
	return in(f.path, func(root *os.Root) error { return IgnoreMissing(root.Remove(f.name + "." + key)) })
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

// ReadFile returns a regular file of at most limit bytes. It follows no link, and reads a file
// that grows meanwhile no further.
func ReadFile(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	// Another file may have taken its place: a pipe must not block.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err = errors.Join(err, file.Close()); err == nil && int64(len(content)) > limit {
		return nil, fmt.Errorf("%q is larger than %d bytes", name, limit)
	}
	return content, err
}

// ReadIn is ReadFile for a file of a directory.
func ReadIn(directory, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	content, err := ReadFile(root, name, limit)
	return content, errors.Join(err, root.Close())
}

// WriteFile writes a file, whole or not at all, in place of an earlier one.
func WriteFile(root *os.Root, name string, mode os.FileMode, write func(io.Writer) error) error {
	temporary := name + ".new"
	// A link there leads elsewhere.
	if err := IgnoreMissing(root.Remove(temporary)); err != nil {
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
		return errors.Join(err, IgnoreMissing(root.Remove(temporary)))
	}
	return nil
}

// WriteBytes writes a file of the owner's, as WriteFile does.
func WriteBytes(root *os.Root, name string, data []byte) error {
	return WriteFile(root, name, 0o600, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

// IgnoreMissing returns an error unless it says that a file is not there.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
