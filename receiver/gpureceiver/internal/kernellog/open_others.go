//go:build !linux

package kernellog

import "io/fs"

// open returns an error: only Linux has this log.
func open(path string) (log, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}
