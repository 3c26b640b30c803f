package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

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
	r, err := vocabulary.NewReader(vocabulary.Options{Systems: vocabulary.GenAI})
	require.NoError(t, err)
	assert.Equal(t, table.NoEvent, r.Event("snakepit.call.stop"))
}
