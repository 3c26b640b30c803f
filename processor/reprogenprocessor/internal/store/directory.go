package store

import (
	"errors"
	"fmt"
	"os"
)

const lockName = ".lock"

// lockDirectory refuses a directory that others could use against its owner: it checks that
// root is what its path names. It locks the directory.
func lockDirectory(root *os.Root) (*os.File, error) {
	opened, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	named, err := os.Lstat(root.Name())
	switch {
	case err != nil:
		return nil, err
	case !os.SameFile(named, opened):
		return nil, fmt.Errorf("%q was replaced while it was opened", root.Name())
	case !ownedByUser(opened):
		return nil, fmt.Errorf("%q belongs to another user: name a folder of the collector's user", root.Name())
	}
	// Opening the lock also shows that files can be created at all.
	lock, err := root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: make the folder writable for the collector's user", err)
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(
			fmt.Errorf("%q is in use by another collector or another repro_gen: give each a folder of its own: %w", root.Name(), err),
			lock.Close())
	}
	return lock, nil
}
