package kernellog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// maxText is the length of a message of the driver above which it is cut, in
	// bytes.
	maxText = 512
	// maxProcess is the length of the longest name of a process, in bytes: the
	// driver's own limit.
	maxProcess = 100
	// fallenOff is the code of a GPU that fell off the bus.
	fallenOff = 79
)

// Report is what one message of the drivers reports.
type Report struct {
	// Address is the address on the PCI bus, as domain:bus:device in lower case.
	Address string
	// UUID is the GPU's UUID. A report with it has no more than that and the
	// address.
	UUID string
	// Event has what the driver says of the error: not the time, the host and the GPU.
	device.Event
}

// The lines that report something. The driver of NVSwitches writes two more lines of
// each error, with other words in the place of "Non-fatal", which report nothing.
var (
	gpuError = regexp.MustCompile(`(?s)^NVRM: Xid \(([^\s)]+)(?: GPU-I:(\d+))?(?: GPU-CI:(\d+))?[^)]*\): +(\d{1,6})` +
		`(?:, *pid=([^,]*)(?:, *name=([^,]*))?)?(?:, *(.*))?$`)
	gpuGone     = regexp.MustCompile(`(?s)^NVRM: GPU (\S+): (GPU has fallen off the bus.*)$`)
	gpuName     = regexp.MustCompile(`^NVRM: GPU at (\S+): (GPU-[0-9a-f-]{36})\s*$`)
	switchError = regexp.MustCompile(`(?s)^nvidia-nvswitch(\d+): SXid \((?:PCI:)?(\S+)\): +(\d{1,6}), *(Fatal|Non-fatal), *((?:Link +(\d+)(?: |$))?.*)$`)
	pciAddress  = regexp.MustCompile(`^0*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})(?:\..*)?$`)
)

// readLine returns what a line reports, and whether it reports anything. Any text is
// accepted: a line that is malformed reports nothing.
func readLine(line string) (r Report, found bool) {
	place := ""
	if m := gpuError.FindStringSubmatch(line); m != nil {
		place, r.Event = m[1], device.Event{
			Code: codeOf(m[4]), GPUInstance: number(m[2]), ComputeInstance: number(m[3]),
			PID: number(m[5]), Process: cut(strings.TrimSpace(m[6]), maxProcess), Text: cut(m[7], maxText),
		}
		if r.Process == "<unknown>" {
			r.Process = ""
		}
	} else if m := switchError.FindStringSubmatch(line); m != nil {
		of := &device.Switch{Index: number(m[1]).Value, PCIBusID: strings.ToLower(m[2]), Fatal: m[4] == "Fatal", Link: number(m[6])}
		place, r.Event = m[2], device.Event{Code: codeOf(m[3]), Switch: of, Text: cut(m[5], maxText)}
	} else if m := gpuName.FindStringSubmatch(line); m != nil {
		place, r.UUID = m[1], m[2]
	} else if m := gpuGone.FindStringSubmatch(line); m != nil {
		place, r.Event = m[1], device.Event{Code: fallenOff, Text: cut(m[2], maxText)}
	}
	r.Address, found = Address(place)
	return r, found
}

// Address returns an address on the PCI bus as reports have it, from one with or
// without "PCI:" and the function, and reports whether the text is one. NVML and sysfs
// write the domain in four or eight digits.
func Address(text string) (string, bool) {
	m := pciAddress.FindStringSubmatch(strings.ToLower(strings.TrimPrefix(text, "PCI:")))
	if m == nil {
		return "", false
	}
	return m[1], true
}

// cut returns the start of a text in valid UTF-8.
func cut(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "?")
}

// codeOf reads digits, of which there are few.
func codeOf(digits string) uint64 {
	code, _ := strconv.ParseUint(digits, 10, 64)
	return code
}

// number reads a small decimal number that is not negative, and is unknown for
// anything else.
func number(digits string) workload.Number {
	value, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
	return workload.Number{Value: int64(value), Known: err == nil} // #nosec G115 -- it has 31 bits
}

const (
	// maxRecord is longer than any record: the kernel's limit is 8 KiB with the
	// escapes.
	maxRecord = 16 << 10
	// kernelFacility is the facility of the kernel's own messages. A program that
	// writes to /dev/kmsg cannot have it.
	kernelFacility = 0
)

// lineOf returns the message of a record of /dev/kmsg, whose form is
// "priority,sequence,microseconds,flags;text" with escapes, followed by lines of
// properties, and the record's number. It returns no message of a record that the
// kernel did not write itself, and reports whether the text is a record.
func lineOf(record string) (line string, sequence uint64, ok bool) {
	found := recordForm.FindStringSubmatch(record)
	if found == nil {
		return "", 0, false
	}
	if codeOf(found[1])>>3 == kernelFacility {
		line = found[3]
	}
	return line, codeOf(found[2]), true
}

var recordForm = regexp.MustCompile(`^(\d{1,9}),(\d{1,19}),[^;]*;([^\n]*)`)
