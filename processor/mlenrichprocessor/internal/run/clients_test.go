package run

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClientsOfAProcessAddUp(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := NewClients(func() time.Time { return at })
	assert.Zero(t, c.Recognise("p", 0))
	assert.Zero(t, c.Size().Entries, "nothing was found")
	assert.Equal(t, systemTuFT, c.Recognise("p", systemTuFT))
	assert.Equal(t, systemTuFT|systemVLLM, c.Recognise("p", systemVLLM))
	assert.Zero(t, c.Recognise("another", 0))
	at = at.Add(clientAge + time.Second)
	assert.Zero(t, c.Recognise("p", 0), "it has expired")
	for i := range maxClients + 1 {
		c.Recognise(strconv.Itoa(i), systemFX)
	}
	assert.Equal(t, maxClients, c.Size().Entries)
	assert.EqualValues(t, 1, c.Size().Evicted)
}
