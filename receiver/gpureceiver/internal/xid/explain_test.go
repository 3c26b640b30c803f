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
		code     uint64
		text     string
		effect   Effect
		severity Severity
		detail   Detail
	}{
		"no message":                   {code: 149, effect: Degrades, severity: Device},
		"another message":              {code: 149, text: "something new", effect: Degrades, severity: Device},
		"a link":                       {149, linkDown, Fails, Device, Detail{"NETIR_LINK_EVT", 33, 1}},
		"a unit that continues":        {145, rxPipe, None, Notice, Detail{"RLW_RXPIPE", 0, 13}},
		"judged by a recovery action":  {145, "RLW_REMAP Nonfatal XC0 i0 Link 2 (0x00000004 0x00000020)", Degrades, Device, Detail{"RLW_REMAP", 0, 2}},
		"fatal to the driver alone":    {148, "NVLPW Fatal XC0 i0 Link 2 (0x0000000f 0x80000000)", Degrades, Device, Detail{"NVLPW", 0, 2}},
		"a sub-code without an effect": {149, "NETIR_LINK_DOWN Nonfatal XC0 i0 Link -1 (0x02600011 0x00000000)", None, Notice, Detail{"NETIR_LINK_DOWN", 38, -1}},
		"an unknown unit":              {146, "TLW_NEW Fatal XC0 i0 Link 2 (0x0000007f 0x1)", Degrades, Device, Detail{"TLW_NEW", 0, 2}},
		"a watchdog":                   {150, "MSE_WATCHDOG Fatal XC0 i0 Link 0 (0x00000000 0x00000000)", Fails, Device, Detail{"MSE_WATCHDOG", 0, 0}},
		"drain and reset":              {code: 154, text: "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", effect: Degrades, severity: Device},
		"reset":                        {code: 154, text: "GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)", effect: Fails, severity: Device},
		"no action":                    {code: 154, text: "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", severity: Notice},
		"a new action":                 {code: 154, text: "GPU recovery action changed from 0x0 (None) to 0x9 (New)", severity: Notice},
		"no change":                    {code: 154, text: "x", severity: Notice},
		"another code":                 {code: 31, text: linkDown, severity: Program},
	} {
		t.Run(name, func(t *testing.T) {
			meaning, detail := Explain(test.code, test.text)
			assert.Equal(t, test.effect, meaning.Effect)
			assert.Equal(t, test.severity, meaning.Severity)
			assert.Equal(t, test.detail, detail)
			assert.True(t, meaning.Known)
		})
	}
}

// A name in a message leads to one unit of its code.
func TestUnitsOfNVLinkDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range nvlinkUnits {
		for _, name := range nvlinkUnits[i].Names {
			key := fmt.Sprint(nvlinkUnits[i].Code, " ", name)
			assert.False(t, seen[key], key)
			seen[key] = true
		}
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
	f.Add(uint64(149), "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000)")
	f.Add(uint64(154), "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
	f.Fuzz(func(t *testing.T, code uint64, text string) {
		meaning, detail := Explain(code, text)
		assert.NotEmpty(t, meaning.Text)
		assert.LessOrEqual(t, len(detail.Unit), 32)
		assert.LessOrEqual(t, detail.SubCode, int64(subCodeMask))
	})
}
