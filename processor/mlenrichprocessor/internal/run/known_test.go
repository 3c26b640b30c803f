package run

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Places and runs have bounds of their own: many of one push none of the other out.
func TestTrainersAreBounded(t *testing.T) {
	trainers := NewTrainers(time.Now)
	attrs := pcommon.NewMap()
	attrs.PutStr("container.id", "c1")
	trainers.See(Run{ID: "first"}, new(Process), attrs, true)
	for i := range 2 * maxPlaces {
		trainers.See(Run{ID: "second"}, &Process{Host: "n1", PID: strconv.Itoa(i)}, pcommon.NewMap(), true)
	}
	assert.True(t, trainers.SendSteps("first"), "places push no run out")
	_, ok := trainers.At(new(Process), attrs)
	assert.False(t, ok)
	trainers.See(Run{ID: "first"}, new(Process), attrs, true)
	for i := range maxRuns {
		trainers.See(Run{ID: strconv.Itoa(i)}, new(Process), pcommon.NewMap(), true)
	}
	assert.False(t, trainers.SendSteps("first"))
	assert.True(t, trainers.SendSteps("0"))
	at, ok := trainers.At(new(Process), attrs)
	assert.True(t, ok, "runs push no place out")
	assert.Equal(t, "first", at.ID)
}
