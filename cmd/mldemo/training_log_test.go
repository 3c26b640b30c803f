package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrainingLines(t *testing.T) {
	t.Parallel()
	lines, err := trainingLines(realTraining)
	require.NoError(t, err)
	assert.Len(t, lines, 5141)
	assert.Zero(t, lines[0].after)
	assert.True(t, strings.HasPrefix(lines[0].text, "step:1/5100 train_loss:"), lines[0].text)
	last := lines[len(lines)-1]
	assert.Equal(t, "step:5100/5100 val_loss:3.2741 train_time:910546ms\n", last.text)
	assert.InDelta(t, 922.5, last.after.Seconds(), 1)
	_, err = trainingLines([]byte("no gzip"))
	require.Error(t, err)
}

func TestPrintTraining(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	file, err := createTrainingLog(folder)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- printTraining(ctx, file) }()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		text, err := os.ReadFile(filepath.Join(folder, trainingLog))
		require.NoError(c, err)
		assert.Positive(c, strings.Count(string(text), "\n"))
	}, 10*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, file.Close())
	require.Error(t, printTraining(t.Context(), file))
}
