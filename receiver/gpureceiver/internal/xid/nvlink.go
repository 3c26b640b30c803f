package xid

import (
	"regexp"
	"slices"
	"strconv"
)

// Detail is what the driver's message says beyond the code of an error of NVLink 5,
// XID 144 to 150. The zero value means that it says nothing.
type Detail struct {
	// Unit is the part of the NVLink hardware in the driver's words, such as
	// NETIR_LINK_EVT.
	Unit string
	// SubCode is the cause within the unit.
	SubCode int64
	// Link is the number of the link, -1 if the error concerns none.
	Link int64
}

// The bits of the first word of a message that are the sub-code, by NVIDIA's catalogue.
const (
	subCodeShift = 20
	subCodeMask  = 1<<6 - 1
)

// nvlinkUnit is a unit of NVLink 5 with the errors that need more than a look.
type nvlinkUnit struct {
	Code uint64
	// Names are its names in messages.
	Names []string
	// Reset are the error statuses after which the GPU has to be reset, and
	// Judged those whose action the driver reports as a recovery action (XID 154).
	Reset, Judged []uint32
	// Harmless are the sub-codes without an effect, of a unit that otherwise
	// needs a reset whatever the status. Nil means that the status decides.
	Harmless []int64
}

// The meanings of errors of NVLink 5 by their effect.
var (
	nvlinkReset    = Meaning{Text: "An NVLink unit or link failed, and the GPU needs a reset", Severity: Device, Effect: Fails}
	nvlinkJudged   = Meaning{Text: "An NVLink unit failed; a recovery action (XID 154) follows if one is needed", Severity: Device, Effect: Degrades}
	nvlinkHarmless = Meaning{Text: "An NVLink unit reported an error after which the GPU continues", Severity: Notice}
)

// nvlinkText is the form of a message such as "RLW_RXPIPE Nonfatal XC0 i0 Link 13
// (0x0409a0c2 0x00000008 …)".
var nvlinkText = regexp.MustCompile(`^\s*([A-Z0-9_/]{1,32})\s+(Fatal|Nonfatal)\s(?:.*?\s)??Link\s+(\S+)\s+\(?0x([0-9a-fA-F]{1,8})\s+0x([0-9a-fA-F]{1,8})(?:[\s)]|$)`)

// hexWord reads at most eight digits.
func hexWord(digits string) uint32 {
	value, _ := strconv.ParseUint(digits, 16, 32)
	return uint32(value) // #nosec G115 -- it has 32 bits
}

// explainNVLink returns the meaning of an error of NVLink 5 by the groups of its message: the
// unit, whether it is fatal, the link, and two words in hexadecimal. A unit or a status that
// is not in the catalogue leaves the meaning of the code.
func explainNVLink(code uint64, message []string) (Meaning, Detail) {
	detail := Detail{Unit: message[1], SubCode: int64(hexWord(message[4]) >> subCodeShift & subCodeMask), Link: -1}
	if link, err := strconv.ParseInt(message[3], 10, 16); err == nil && link >= 0 {
		detail.Link = link
	}
	at := slices.IndexFunc(nvlinkUnits, func(u nvlinkUnit) bool { return u.Code == code && slices.Contains(u.Names, detail.Unit) })
	if at < 0 {
		return Of(code), detail
	}
	meaning := nvlinkUnits[at].effect(detail.SubCode, hexWord(message[5]))
	if message[2] == "Fatal" && meaning.Effect == None {
		// The driver knows its hardware better than the catalogue.
		meaning = nvlinkJudged
	}
	meaning.Known = true
	return meaning, detail
}

func (u *nvlinkUnit) effect(subCode int64, status uint32) Meaning {
	switch {
	case u.Harmless != nil && !slices.Contains(u.Harmless, subCode), slices.Contains(u.Reset, status):
		return nvlinkReset
	case slices.Contains(u.Judged, status):
		return nvlinkJudged
	}
	return nvlinkHarmless
}
