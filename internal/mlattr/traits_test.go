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
	for _, table := range mlattr.Tables() {
		for _, trait := range table.Traits {
			assert.NotEmpty(t, trait.String(), table.Name)
		}
		assert.False(t, table.System.Has(mlattr.ProcessIsRun) && table.System.Has(mlattr.ManyRuns), table.Name)
		assert.False(t, table.System.Has(mlattr.TraceIsRun) && !table.System.Has(mlattr.ProcessIsRun), table.Name)
	}
}
