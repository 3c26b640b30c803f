package kernellog

import (
	"errors"
	"os"
	"syscall"
)

// kmsg is /dev/kmsg.
type kmsg struct{ *os.File }

// open opens the log without blocking, so that Close ends a Read.
func open(path string) (log, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- the operator chooses the file
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = errors.New("it is a regular file and not the kernel's log")
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return kmsg{file}, nil
}

// ReadWaiting implements log.
func (d kmsg) ReadWaiting(record []byte) (n int, err error) {
	raw, err := d.SyscallConn()
	if err != nil {
		return 0, err
	}
	var result error
	err = raw.Read(func(fd uintptr) bool {
		n, result = syscall.Read(int(fd), record) // #nosec G115 -- a descriptor is small
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case errors.Is(result, syscall.EAGAIN):
		return 0, errNone
	}
	return max(n, 0), result
}
