package kernellog

import (
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
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
	// Code is the XID or SXid.
	Code uint64
	// Switch is nil for an error of a GPU.
	Switch *Switch
	// GPUInstance and ComputeInstance are those of the MIG device, if any.
	GPUInstance     workload.Number
	ComputeInstance workload.Number
	// PID is the process whose work failed, in the host's PID namespace.
	PID workload.Number
	// Process is the name of that process, empty if unknown.
	Process string
	// Text is the driver's message without code and process, cut at maxText.
	Text string
}

// Switch is the NVSwitch that an error is of.
type Switch struct {
	// Index is the driver's number of the switch.
	Index int64
	// Address is its address on the PCI bus with the function.
	Address string
	// Fatal is true if programs cannot continue.
	Fatal bool
	// Link is the number of the link, unknown if the error concerns none.
	Link workload.Number
}

// Parser reads the lines of the kernel's log in their order. The zero value is ready.
type Parser struct {
	// named is the GPU of an unfinished message of three lines, empty if there is
	// none.
	named string
}

// Line returns what a line reports, and whether it reports anything. Any text is
// accepted: a line that is malformed reports nothing.
func (p *Parser) Line(line string) (Report, bool) {
	text, ofDriver := strings.CutPrefix(line, driverPrefix)
	if p.named != "" {
		if report, found, more := p.continued(text); found || more {
			return report, found
		}
	}
	if !ofDriver {
		return ofSwitch(line)
	}
	if rest, found := strings.CutPrefix(text, "Xid ("); found {
		return ofGPU(rest)
	}
	if rest, found := strings.CutPrefix(text, "GPU at "); found {
		return identity(rest)
	}
	if rest, found := strings.CutPrefix(text, "The NVIDIA GPU "); found {
		p.named, _ = Address(strings.TrimSpace(rest))
		return Report{}, false
	}
	if rest, found := strings.CutPrefix(text, "GPU "); found {
		place, message, _ := strings.Cut(rest, ": ")
		if at, ok := Address(place); ok && strings.HasPrefix(message, "GPU has fallen off the bus") {
			return Report{Address: at, Code: fallenOff, Text: cut(message, maxText)}, true
		}
	}
	return Report{}, false
}

// continued reads the second and third line of the message of a GPU that does not
// respond. more reports whether the message goes on.
func (p *Parser) continued(text string) (report Report, found, more bool) {
	if strings.HasPrefix(text, "(PCI ID: ") {
		return Report{}, false, true
	}
	at := p.named
	p.named = ""
	if !strings.HasPrefix(text, "fallen off the bus and is not responding") {
		return Report{}, false, false
	}
	return Report{Address: at, Code: fallenOff, Text: "GPU has fallen off the bus and is not responding to commands"}, true, false
}

// ofGPU reads "PCI:0000:9b:00 GPU-I:05 GPU-CI:00): 119, pid=…, name=…, message".
func ofGPU(rest string) (r Report, found bool) {
	place, rest, found := strings.Cut(rest, "): ")
	if !found {
		return Report{}, false
	}
	words := strings.Fields(place)
	if len(words) == 0 {
		return Report{}, false
	}
	if r.Address, found = Address(words[0]); !found {
		return Report{}, false
	}
	for _, word := range words[1:] {
		if digits, is := strings.CutPrefix(word, "GPU-I:"); is {
			r.GPUInstance = number(digits)
		}
		if digits, is := strings.CutPrefix(word, "GPU-CI:"); is {
			r.ComputeInstance = number(digits)
		}
	}
	code, rest, _ := strings.Cut(rest, ",")
	if r.Code, found = codeOf(code); !found {
		return Report{}, false
	}
	rest = strings.TrimSpace(rest)
	if value, after, is := property(rest, "pid="); is {
		r.PID, rest = number(value), after
		if value, after, is := property(rest, "name="); is {
			r.Process, rest = cut(value, maxProcess), after
			if value == "<unknown>" {
				r.Process = ""
			}
		}
	}
	r.Text = cut(rest, maxText)
	return r, true
}

// property returns the value of "key=value, " at the start of a text.
func property(text, key string) (value, after string, found bool) {
	rest, found := strings.CutPrefix(text, key)
	if !found {
		return "", text, false
	}
	value, after, _ = strings.Cut(rest, ",")
	return strings.TrimSpace(value), strings.TrimSpace(after), true
}

// ofSwitch reads "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44
// message". The driver writes two more lines of each error, with other words in the
// place of "Non-fatal", which report nothing.
func ofSwitch(line string) (Report, bool) {
	rest, found := strings.CutPrefix(line, "nvidia-nvswitch")
	if !found {
		return Report{}, false
	}
	device, rest, found := strings.Cut(rest, " SXid (")
	index := number(strings.TrimSuffix(device, ":"))
	place, rest, closed := strings.Cut(rest, "): ")
	at, known := Address(place)
	if !found || !closed || !known || !index.Known {
		return Report{}, false
	}
	digits, rest, _ := strings.Cut(rest, ",")
	code, known := codeOf(digits)
	word, message, _ := strings.Cut(strings.TrimSpace(rest), ",")
	if !known || word != "Fatal" && word != "Non-fatal" {
		return Report{}, false
	}
	message = strings.TrimSpace(message)
	of := &Switch{Index: index.Value, Address: strings.ToLower(strings.TrimPrefix(place, "PCI:")), Fatal: word == "Fatal"}
	if words := strings.Fields(message); len(words) > 1 && words[0] == "Link" {
		of.Link = number(words[1])
	}
	return Report{Address: at, Code: code, Switch: of, Text: cut(message, maxText)}, true
}

// identity reads "PCI:0000:00:05: GPU-…".
func identity(rest string) (Report, bool) {
	place, uuid, found := strings.Cut(rest, ": ")
	at, known := Address(place)
	uuid = strings.TrimSpace(uuid)
	if !found || !known || !isUUID(uuid) {
		return Report{}, false
	}
	return Report{Address: at, UUID: uuid}, true
}

// isUUID reports whether a text has the form of a GPU's UUID.
func isUUID(text string) bool {
	digits, found := strings.CutPrefix(text, "GPU-")
	return found && len(digits) == 36 && strings.Trim(digits, "0123456789abcdef-") == ""
}

// Address returns an address on the PCI bus as reports have it, from one with or
// without "PCI:" and the function, and reports whether the text is one.
func Address(text string) (string, bool) {
	text = strings.ToLower(strings.TrimPrefix(text, "PCI:"))
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return "", false
	}
	parts[2], _, _ = strings.Cut(parts[2], ".")
	for i, digits := range []int{4, 2, 2} {
		// NVML and sysfs write the domain in four or eight digits.
		for i == 0 && len(parts[0]) > digits && parts[0][0] == '0' {
			parts[0] = parts[0][1:]
		}
		if len(parts[i]) != digits || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return "", false
		}
	}
	return strings.Join(parts, ":"), true
}

// cut returns the start of a text in valid UTF-8.
func cut(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "?")
}

// maxCode is above every code. SXids have five digits.
const maxCode = 1_000_000

func codeOf(digits string) (uint64, bool) {
	code, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 32)
	return code, err == nil && code < maxCode
}

// number reads a small decimal number that is not negative, and is unknown for
// anything else.
func number(digits string) workload.Number {
	value, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
	return workload.Number{Value: int64(value), Known: err == nil} // #nosec G115 -- it has 31 bits
}
