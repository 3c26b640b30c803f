package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const lockName = ".lock"

// openDirectory creates the directory if need be, refuses one that others
// could use against its owner, and locks it.
func openDirectory(dir string) (root *os.Root, lock *os.File, err error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, fmt.Errorf("%w: create it, or name a folder that the collector's user may create", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, nil, err
	}
	root, err = os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	lock, err = lockDirectory(path, root, info)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, lock, nil
}

// lockDirectory checks that root is what info described, and locks it.
func lockDirectory(path string, root *os.Root, info fs.FileInfo) (*os.File, error) {
	opened, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%q was replaced while it was opened", path)
	}
	// Opening the lock also shows that files can be created at all.
	lock, err := root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: make the folder writable for the collector's user", err)
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(
			fmt.Errorf("%q is in use by another collector or another repro_gen: give each a folder of its own: %w", path, err),
			lock.Close())
	}
	return lock, nil
}

func checkPrivate(path string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%q is a symbolic link: name the folder that it leads to", path)
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder: name another path", path)
	case !ownedByUser(info):
		return fmt.Errorf("%q belongs to another user: name a folder of the collector's user", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%q has mode %04o, and others may write to it: chmod 0700 it", path, info.Mode().Perm())
	}
	return nil
}
