package saved

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/component"
)

// maxFile limits what is read of a file, in bytes.
const maxFile = 64 << 20

// OpenFolder loads what is kept in a folder, which is created if need be, and must not be
// writable for others. A folder that cannot be used is no error, because it is usually
// not what the collector is there for: fail is told, and each save tries again.
func OpenFolder(ctx context.Context, path string, kind component.Kind, owner component.ID, kept Kept, fail Fail) *State {
	name := strings.ToLower(kind.String()) + "_" + owner.Type().String()
	if owner.Name() != "" {
		// A name can have a slash.
		name += fmt.Sprintf("_%x", owner.Name())
	}
	s := &State{client: &folder{path: path, name: name}, kept: kept, fail: fail}
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
