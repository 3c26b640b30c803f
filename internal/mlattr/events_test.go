package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestEventsByName(t *testing.T) {
	r := mlattr.Default()
	for _, client := range mlattr.Tables() {
		for _, event := range client.Events {
			assert.NotEqual(t, mlattr.NoEvent, event.Kind, event.Name)
			assert.Equal(t, event.Kind, r.Event(event.Name))
		}
	}
	assert.Equal(t, mlattr.EventCallStop, r.Event("snakepit.call.stop"))
	for _, name := range []string{"", "exception", "snakepit.", "snakepit.call.stop2", "gen_ai.choice"} {
		assert.Equal(t, mlattr.NoEvent, r.Event(name), name)
	}
}

func TestEventsOfVocabulariesThatAreNotSelected(t *testing.T) {
	r, err := mlattr.NewReader(mlattr.Options{Systems: mlattr.GenAI})
	require.NoError(t, err)
	assert.Equal(t, mlattr.NoEvent, r.Event("snakepit.call.stop"))
}
