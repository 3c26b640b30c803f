package health

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// Evidence is what is known about a GPU.
type Evidence struct {
	Lost, Unresponsive                        bool
	RecoveryAction, RemapPending, RemapFailed device.Number
	Errors                                    []Error
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		evidence Evidence
		expected State
	}{
		"nothing known":   {Evidence{}, OK},
		"all is well":     {Evidence{RecoveryAction: device.Read(0.0), RemapPending: device.Read(0), RemapFailed: device.Read(0)}, OK},
		"lost":            {Evidence{Lost: true}, Failed},
		"unresponsive":    {Evidence{Unresponsive: true}, Failed},
		"remap failed":    {Evidence{RemapFailed: device.Read(1), RecoveryAction: device.Read(0.0)}, Failed},
		"remap pending":   {Evidence{RemapPending: device.Read(1), RecoveryAction: device.Read(0.0)}, PredictedFailure},
		"reset":           {Evidence{RecoveryAction: device.Read(1)}, Failed},
		"reboot":          {Evidence{RecoveryAction: device.Read(2)}, Failed},
		"drain P2P":       {Evidence{RecoveryAction: device.Read(3)}, Degraded},
		"drain and reset": {Evidence{RecoveryAction: device.Read(4)}, Degraded},
		"IMEX domain":     {Evidence{RecoveryAction: device.Read(5)}, Degraded},
		"a new action":    {Evidence{RecoveryAction: device.Read(17.0)}, Degraded},

		"drain with a row to remap": {Evidence{RecoveryAction: device.Read(3), RemapPending: device.Read(1)}, Degraded},
		"a row to remap, no action": {Evidence{RemapPending: device.Read(1), Errors: errorsOf(13)}, PredictedFailure},

		"a program's error":      {Evidence{Errors: errorsOf(13, 31, 43, 45)}, OK},
		"an unknown error":       {Evidence{Errors: errorsOf(9999)}, OK},
		"uncorrected":            {Evidence{Errors: errorsOf(48)}, Degraded},
		"NVLink":                 {Evidence{Errors: errorsOf(74)}, Degraded},
		"contained":              {Evidence{Errors: errorsOf(94)}, Degraded},
		"uncontained":            {Evidence{Errors: errorsOf(95)}, Failed},
		"off the bus":            {Evidence{Errors: errorsOf(79)}, Failed},
		"GSP":                    {Evidence{Errors: errorsOf(119)}, Failed},
		"remapped":               {Evidence{Errors: errorsOf(63)}, PredictedFailure},
		"not remapped":           {Evidence{Errors: errorsOf(64)}, Failed},
		"the worst":              {Evidence{Errors: errorsOf(63, 48, 13)}, Degraded},
		"the worst, other order": {Evidence{Errors: errorsOf(79, 48, 63)}, Failed},

		"an action of none wins over errors":   {Evidence{RecoveryAction: device.Read(0.0), Errors: errorsOf(79, 95)}, OK},
		"an action of drain wins over errors":  {Evidence{RecoveryAction: device.Read(3), Errors: errorsOf(79)}, Degraded},
		"lost wins over an action of none":     {Evidence{Lost: true, RecoveryAction: device.Read(0.0)}, Failed},
		"a remap that is done wins over 63":    {Evidence{RemapPending: device.Read(0), Errors: errorsOf(63)}, OK},
		"a remap that did not fail wins over":  {Evidence{RemapFailed: device.Read(0), Errors: errorsOf(64)}, OK},
		"flags win only over what they are of": {Evidence{RemapPending: device.Read(0), RemapFailed: device.Read(0), Errors: errorsOf(95)}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			gpu := device.GPU{Lost: test.evidence.Lost, Unresponsive: test.evidence.Unresponsive}
			for quantity, number := range map[*device.Quantity]device.Number{
				device.RecoveryAction: test.evidence.RecoveryAction,
				device.RemapPending:   test.evidence.RemapPending,
				device.RemapFailed:    test.evidence.RemapFailed,
			} {
				if number.Known {
					quantity.Store(&gpu.Readings, number.Value)
				}
			}
			assert.Equal(t, test.expected, Judge(&gpu, test.evidence.Errors))
		})
	}
}

// errorsOf returns errors whose effect is that of their codes.
func errorsOf(codes ...uint64) []Error {
	var all []Error
	for _, code := range codes {
		all = append(all, Error{Code: code, Effect: xid.Of(code).Effect})
	}
	return all
}
