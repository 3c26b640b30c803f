package xid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The messages are those of real hosts; the expected sub-codes, units and effects are
// those of NVIDIA's catalogue.
func TestExplain(t *testing.T) {
	const (
		linkDown = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
		rxPipe   = "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"
	)
	for name, test := range map[string]struct {
		code         uint64
		text, driver string
		effect       Effect
		severity     Severity
		detail       Detail
	}{
		"no message":                   {code: 149, effect: Degrades, severity: Device},
		"another message":              {code: 149, text: "something new", effect: Degrades, severity: Device},
		"a link":                       {149, linkDown, "570.124.06", Fails, Device, Detail{"NETIR_LINK_EVT", 33, 1}},
		"a link, driver unknown":       {149, linkDown, "", Fails, Device, Detail{"NETIR_LINK_EVT", 33, 1}},
		"a unit that continues":        {145, rxPipe, "570.124.06", None, Notice, Detail{"RLW_RXPIPE", 0, 13}},
		"by number, early":             {145, "NEW_NAME Nonfatal XC0 i0 Link 2 (0x00000082 0x00000040)", "570.1", Fails, Device, Detail{"NEW_NAME", 0, 2}},
		"by number, since 575":         {145, "NEW_NAME Nonfatal XC0 i0 Link 2 (0x00000004 0x00000040)", "575.1", Fails, Device, Detail{"NEW_NAME", 0, 2}},
		"the early number since 575":   {145, "NEW_NAME Nonfatal XC0 i0 Link 2 (0x00000082 0x00000040)", "575.1", Degrades, Device, Detail{"NEW_NAME", 0, 2}},
		"judged by a recovery action":  {145, "RLW_REMAP Nonfatal XC0 i0 Link 2 (0x00000004 0x00000020)", "580.1", Degrades, Device, Detail{"RLW_REMAP", 0, 2}},
		"fatal to the driver alone":    {148, "NVLPW Fatal XC0 i0 Link 2 (0x0000000f 0x80000000)", "580.1", Degrades, Device, Detail{"NVLPW", 0, 2}},
		"a sub-code without an effect": {149, "NETIR_LINK_DOWN Nonfatal XC0 i0 Link -1 (0x02600011 0x00000000)", "580.1", None, Notice, Detail{"NETIR_LINK_DOWN", 38, -1}},
		"an unknown unit":              {146, "TLW_NEW Fatal XC0 i0 Link 2 (0x0000007f 0x1)", "580.1", Degrades, Device, Detail{"TLW_NEW", 0, 2}},
		"a watchdog":                   {150, "MSE_WATCHDOG Fatal XC0 i0 Link 0 (0x00000000 0x00000000)", "580.1", Fails, Device, Detail{"MSE_WATCHDOG", 0, 0}},
		"drain and reset":              {code: 154, text: "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", effect: Degrades, severity: Device},
		"reset":                        {code: 154, text: "GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)", effect: Fails, severity: Device},
		"no action":                    {code: 154, text: "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", severity: Notice},
		"a new action":                 {code: 154, text: "GPU recovery action changed from 0x0 (None) to 0x9 (New)", severity: Notice},
		"no change":                    {code: 154, text: "x", severity: Notice},
		"another code":                 {code: 31, text: linkDown, severity: Program},
	} {
		t.Run(name, func(t *testing.T) {
			meaning, detail := Explain(test.code, test.text, test.driver)
			assert.Equal(t, test.effect, meaning.Effect)
			assert.Equal(t, test.severity, meaning.Severity)
			assert.Equal(t, test.detail, detail)
			assert.True(t, meaning.Known)
		})
	}
}

// The number of a unit in a message leads to that unit, in the form of either branch,
// and is the only one of its code.
func TestUnitsOfNVLinkDiffer(t *testing.T) {
	seen := map[string]string{}
	for i := range nvlinkUnits {
		unit := &nvlinkUnits[i]
		last := unit.Names[len(unit.Names)-1]
		key := fmt.Sprint(unit.Code, " ", unit.Bits)
		assert.Empty(t, seen[key], last)
		seen[key] = last
		assert.Equal(t, unit, nvlinkMessage{unit: "?", info: unit.Bits | 1<<26}.find(unit.Code, "580.65.06"), last)
		early := nvlinkMessage{unit: "?", info: unit.Early}.find(unit.Code, "550.54.14")
		assert.Equal(t, unit.Reset, early.Reset, "%s: units that share an early number have the same effects", last)
		assert.Zero(t, unit.Bits&^unitMask|unit.Early&^earlyUnitMask, last)
	}
}

func TestMeaningsOfMessagesAreSentences(t *testing.T) {
	texts := []Meaning{nvlinkReset, nvlinkJudged, nvlinkHarmless, OfSwitch(true), OfSwitch(false)}
	for _, meaning := range recoveryActions {
		texts = append(texts, meaning)
	}
	for _, meaning := range texts {
		assert.LessOrEqual(t, len(meaning.Text), 120)
		assert.Regexp(t, `^[A-Z].*[^.]$`, meaning.Text)
	}
}

// FuzzExplain holds that any message is read without a panic.
func FuzzExplain(f *testing.F) {
	f.Add(uint64(149), "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000)", "570.124.06")
	f.Add(uint64(154), "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "")
	f.Fuzz(func(t *testing.T, code uint64, text, driver string) {
		meaning, detail := Explain(code, text, driver)
		assert.NotEmpty(t, meaning.Text)
		assert.LessOrEqual(t, len(detail.Unit), 32)
		assert.LessOrEqual(t, detail.SubCode, int64(subCodeMask))
	})
}
