package kernellog

import (
	"strconv"
	"strings"
)

const (
	// maxRecord is longer than any record: the kernel's limit is 8 KiB with the
	// escapes.
	maxRecord = 16 << 10
	// kernelFacility is the facility of the kernel's own messages. A program that
	// writes to /dev/kmsg cannot have it.
	kernelFacility = 0
	// driverPrefix begins each line of the driver of GPUs.
	driverPrefix = "NVRM: "
)

// linesOf returns the lines of a record of /dev/kmsg, whose form is
// "priority,sequence,microseconds,flags;text" with escapes, followed by lines of
// properties, and the record's number. It returns no lines for a record that the
// kernel did not write itself, and reports whether the text is a record. Only a
// message of the driver of GPUs can have several lines: in other messages, what looks
// like the start of a line can be a user's text.
func linesOf(record string) (lines []string, sequence uint64, ok bool) {
	head, text, found := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !found || len(fields) < 3 {
		return nil, 0, false
	}
	priority, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return nil, 0, false
	}
	if sequence, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
		return nil, 0, false
	}
	if priority>>3 != kernelFacility {
		return nil, sequence, true
	}
	text, _, _ = strings.Cut(text, "\n")
	if strings.HasPrefix(text, driverPrefix) {
		return strings.Split(text, `\x0a`), sequence, true
	}
	return []string{text}, sequence, true
}
