package shared_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

func TestStop(t *testing.T) {
	var stop shared.Stop
	failed, release := errors.New("failed"), make(chan struct{})
	ended := 0
	end := func() error {
		<-release
		ended++
		return failed
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, stop.Do(impatient, end), context.Canceled)
	close(release)
	for range 2 {
		require.ErrorIs(t, stop.Do(t.Context(), end), failed, "the end's error is that of each caller")
	}
	assert.Equal(t, 1, ended)
}
