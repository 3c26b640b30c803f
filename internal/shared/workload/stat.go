package workload

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of times in Linux's proc file system, on every
// supported architecture.
const ticksPerSecond = 100

// The fields of /proc/<pid>/stat, counted from the one after the name.
const (
	stateField   = 0
	threadsField = 17
	startField   = 19
)

// maxExecutableLength is above the kernel's limit of 15 bytes for the name of a
// program's process.
const maxExecutableLength = 64

// maxStartTicks bounds a start, so that it fits a duration.
const maxStartTicks = 1 << 39

// stat is what /proc/<pid>/stat says.
type stat struct {
	executable string
	state      byte
	threads    uint64
	// start is in clock ticks since the boot.
	start uint64
}

// parseStat reads /proc/<pid>/stat: id (name) state and numbers. The process
// chooses the name, which can contain brackets and spaces.
func parseStat(raw []byte) (stat, bool) {
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) <= startField || len(fields[stateField]) != 1 {
		return stat{}, false
	}
	threads, err := strconv.ParseUint(string(fields[threadsField]), 10, 32)
	if err != nil {
		return stat{}, false
	}
	start, err := strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil || start > maxStartTicks {
		return stat{}, false
	}
	name := raw[open+1 : end]
	return stat{
		executable: strings.ToValidUTF8(string(name[:min(len(name), maxExecutableLength)]), "\uFFFD"),
		state:      fields[stateField][0],
		threads:    threads,
		start:      start,
	}, true
}

// ended reports whether the process is a zombie or dead. A process whose first
// thread has ended also looks like a zombie, while its other threads run.
func (s *stat) ended() bool {
	switch s.state {
	case 'Z':
		return s.threads <= 1
	case 'X', 'x':
		return true
	}
	return false
}

// parseBoot reads the time of the boot from /proc/stat.
func parseBoot(raw []byte) time.Time {
	for line := range bytes.Lines(raw) {
		value, found := bytes.CutPrefix(line, []byte("btime "))
		if !found {
			continue
		}
		seconds, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 36)
		if err != nil {
			return time.Time{}
		}
		return time.Unix(int64(seconds), 0)
	}
	return time.Time{}
}

// parseStatus reads the real user id, and the process id in the innermost PID
// namespace, from /proc/<pid>/status.
func parseStatus(status []byte) (userID, namespacePID Number) {
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte("Uid:")); found && !userID.Known {
			userID = parseID(bytes.Fields(rest), 0)
		}
		if rest, found := bytes.CutPrefix(line, []byte("NSpid:")); found && !namespacePID.Known {
			fields := bytes.Fields(rest)
			namespacePID = parseID(fields, len(fields)-1)
		}
	}
	return userID, namespacePID
}

// parseID reads one of several ids.
func parseID(fields [][]byte, i int) Number {
	if i < 0 || i >= len(fields) {
		return Number{}
	}
	value, err := strconv.ParseUint(string(fields[i]), 10, 32)
	if err != nil {
		return Number{}
	}
	return Number{Value: int64(value), Known: true}
}

// gone reports whether an error of reading below /proc/<pid> means that the
// process has ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
