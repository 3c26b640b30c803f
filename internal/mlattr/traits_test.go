package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestTraitsOfASetOfClients(t *testing.T) {
	both := mlattr.TuFT | mlattr.TorchTel | mlattr.GenAI
	assert.True(t, both.Has(mlattr.ManyRuns))
	assert.Equal(t, mlattr.TorchTel, both.With(mlattr.ProcessIsRun))
	assert.Equal(t, mlattr.TorchTel|mlattr.TuFT, both.With(mlattr.NoStartup))
	assert.False(t, mlattr.GenAI.Has(mlattr.ProcessIsRun), "nothing is known of it")
	assert.False(t, mlattr.System(0).Has(mlattr.ProcessIsRun))
}

// A rule that asks for a trait which no client has does nothing, and the page
// would not explain it.
func TestEveryTraitHasAClientAndAText(t *testing.T) {
	for trait := mlattr.Trait(0); trait.String() != ""; trait++ {
		assert.True(t, mlattr.AllSystems.Has(trait), trait.String())
	}
	for _, client := range mlattr.Tables() {
		for _, trait := range client.Traits {
			assert.NotEmpty(t, trait.String(), client.Name)
		}
		assert.False(t, client.System.Has(mlattr.ProcessIsRun) && client.System.Has(mlattr.ManyRuns), client.Name)
		assert.False(t, client.System.Has(mlattr.TraceIsRun) && !client.System.Has(mlattr.ProcessIsRun), client.Name)
	}
}
