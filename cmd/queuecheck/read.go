package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Exit codes of the process that reads a file. Any other, and a signal, mean
// that the file is damaged.
const (
	exitDamaged = 1
	// exitUnreadable means that the file could not be checked.
	exitUnreadable = 3
)

// errUnreadable wraps errors that prevent a file from being read.
var errUnreadable = errors.New("cannot be read")

func exitCode(err error) int {
	if errors.Is(err, errUnreadable) {
		return exitUnreadable
	}
	return exitDamaged
}

// lockTimeout is how long another process may hold the file.
const lockTimeout = time.Second

// read reads a whole file and returns an error if it is damaged. Damage may
// also panic, even in a goroutine of bbolt, or end the process with a signal.
func read(file string) error {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, berrors.ErrTimeout) {
			return fmt.Errorf("%s %w: %w", file, errUnreadable, err)
		}
		return err
	}
	return errors.Join(db.View(walk), db.Close())
}

// walk checks all pages and reads all values.
func walk(tx *bbolt.Tx) error {
	var first error
	for err := range tx.Check() {
		if first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
		return bucket.ForEach(func(_, value []byte) error {
			crc32.ChecksumIEEE(value)
			return nil
		})
	})
}
