package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestMarkOfRecords(t *testing.T) {
	assert.False(t, mlattr.IsConcluded(t.Context()))
	assert.True(t, mlattr.IsConcluded(mlattr.WithConcluded(t.Context())))
}
