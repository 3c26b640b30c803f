//go:build !linux

package kernellog

import (
	"io"
	"io/fs"
)

// open returns an error: only Linux has this log.
func open(path string) (io.ReadCloser, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}
