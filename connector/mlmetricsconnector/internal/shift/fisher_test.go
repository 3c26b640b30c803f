package shift_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

func TestFisher(t *testing.T) {
	for name, tt := range map[string]struct {
		recent, usual shift.Counts
		want          float64
	}{
		// Fisher's own example: a lady who names 4 of 4 cups, and 3 of 4.
		"the tea":           {shift.Counts{Of: 4, All: 4}, shift.Counts{Of: 0, All: 4}, 1.0 / 70},
		"one cup wrong":     {shift.Counts{Of: 3, All: 4}, shift.Counts{Of: 1, All: 4}, 17.0 / 70},
		"nothing":           {shift.Counts{}, shift.Counts{Of: 3, All: 9}, 1},
		"none":              {shift.Counts{All: 9}, shift.Counts{Of: 3, All: 9}, 1},
		"all of everything": {shift.Counts{Of: 5, All: 5}, shift.Counts{Of: 7, All: 7}, 1},
		// The sum of C(100, i) C(1100, 15-i) / C(1200, 15) for i from 10 on.
		"ten of a hundred": {shift.Counts{Of: 10, All: 100}, shift.Counts{Of: 5, All: 1100}, 2.2152e-08},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InEpsilon(t, tt.want, shift.Fisher(tt.recent, tt.usual), 0.01)
		})
	}
}
