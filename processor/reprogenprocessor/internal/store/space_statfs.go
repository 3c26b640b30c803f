//go:build linux || darwin || freebsd

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes returns the room that the file's disk has for an ordinary user.
func freeBytes(f *os.File) (bytes int64, known bool) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &stat); err != nil {
		return 0, false
	}
	return int64(uint64(stat.Bavail) * uint64(stat.Bsize)), true //nolint:unconvert // the fields' types differ between the systems
}
