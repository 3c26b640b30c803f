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

// Parser reads the lines of the kernel's log in their order. The zero value is ready.
type Parser struct {
	// named is the GPU of an unfinished message of three lines, empty if there is
	// none.
	named string
}

// Line returns what a line reports, and whether it reports anything. Any text is
// accepted: a line that is malformed reports nothing.
func (p *Parser) Line(line string) (Report, bool) {
	if p.named != "" {
		if strings.HasPrefix(line, driverPrefix+"(PCI ID: ") {
			return Report{}, false
		}
		at := p.named
		p.named = ""
		if strings.HasPrefix(line, driverPrefix+"fallen off the bus and is not responding") {
			return Report{Address: at, Event: device.Event{Code: fallenOff, Text: "GPU has fallen off the bus and is not responding to commands"}}, true
		}
	}
	if rest, found := strings.CutPrefix(line, driverPrefix+"The NVIDIA GPU "); found {
		p.named, _ = Address(strings.TrimSpace(rest))
		return Report{}, false
	}
	r, place := read(line)
	var found bool
	r.Address, found = Address(place)
	return r, found
}

// read returns what a line that stands alone reports, and the address in the driver's
// words.
func read(line string) (r Report, place string) {
	if m := gpuError.FindStringSubmatch(line); m != nil {
		r.Event = device.Event{
			Code: codeOf(m[4]), GPUInstance: number(m[2]), ComputeInstance: number(m[3]),
			PID: number(m[5]), Process: cut(strings.TrimSpace(m[6]), maxProcess), Text: cut(m[7], maxText),
		}
		if r.Process == "<unknown>" {
			r.Process = ""
		}
		return r, m[1]
	}
	if m := switchError.FindStringSubmatch(line); m != nil {
		of := &device.Switch{Index: number(m[1]).Value, PCIBusID: strings.ToLower(m[2]), Fatal: m[4] == "Fatal", Link: number(m[6])}
		return Report{Event: device.Event{Code: codeOf(m[3]), Switch: of, Text: cut(m[5], maxText)}}, m[2]
	}
	if m := gpuName.FindStringSubmatch(line); m != nil {
		return Report{UUID: m[2]}, m[1]
	}
	if m := gpuGone.FindStringSubmatch(line); m != nil {
		return Report{Event: device.Event{Code: fallenOff, Text: cut(m[2], maxText)}}, m[1]
	}
	return r, ""
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

// codeOf reads the digits of a code, of which there are few.
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
