package kernellog

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// open opens the log behind its last record, without blocking, so that Close ends a
// Read.
func open(path string) (io.ReadCloser, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- the operator chooses the file
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = errors.New("it is a regular file and not the kernel's log")
	}
	if err == nil {
		if _, err = file.Seek(0, io.SeekEnd); errors.Is(err, syscall.ESPIPE) {
			err = nil // a pipe has no end
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
