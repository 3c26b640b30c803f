package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestTraitsOfASetOfClients(t *testing.T) {
	both := systemTuFT | systemTorchTel | systemGenAI
	assert.True(t, both.Has(table.ManyRuns))
	assert.Equal(t, systemTorchTel, both.With(table.ProcessIsRun))
	assert.Equal(t, systemTorchTel|systemTuFT, both.With(table.NoStartup))
	assert.False(t, systemGenAI.Has(table.ProcessIsRun), "nothing is known of it")
	assert.False(t, vocabulary.System(0).Has(table.ProcessIsRun))
}

// A rule that asks for a trait which no client has does nothing, and the page
// would not explain it.
func TestEveryTraitHasAClientAndAText(t *testing.T) {
	for trait := table.Trait(0); trait.String() != ""; trait++ {
		assert.True(t, vocabulary.AllSystems.Has(trait), trait.String())
	}
	for _, client := range vocabulary.Tables() {
		for _, trait := range client.Traits {
			assert.NotEmpty(t, trait.String(), client.Name)
		}
		assert.False(t, client.System.Has(table.ProcessIsRun) && client.System.Has(table.ManyRuns), client.Name)
		assert.False(t, client.System.Has(table.TraceIsRun) && !client.System.Has(table.ProcessIsRun), client.Name)
	}
}

func TestEventsByName(t *testing.T) {
	r := vocabulary.Default()
	for _, client := range vocabulary.Tables() {
		for _, event := range client.Events {
			assert.NotEqual(t, table.NoEvent, event.Kind, event.Name)
			assert.Equal(t, event.Kind, r.Event(event.Name))
		}
	}
	assert.Equal(t, table.EventCallStop, r.Event("snakepit.call.stop"))
	for _, name := range []string{"", "exception", "snakepit.", "snakepit.call.stop2", "gen_ai.choice"} {
		assert.Equal(t, table.NoEvent, r.Event(name), name)
	}
}

func TestEventsOfVocabulariesThatAreNotSelected(t *testing.T) {
	r := vocabulary.NewReader(vocabulary.Options{Systems: systemGenAI})
	assert.Equal(t, table.NoEvent, r.Event("snakepit.call.stop"))
}
