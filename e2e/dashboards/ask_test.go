package dashboards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func at(value float64, labels map[string]string) Series {
	return Series{Labels: labels, Points: []Point{{Value: value}}}
}

// What Grafana's "merge" does with the tables of several queries.
func TestMerge(t *testing.T) {
	lines := merge([]merged{
		{"Value #A", []Series{at(1, map[string]string{"run": "r1", "state": "running"}), at(1, map[string]string{"run": "r2", "state": "ended"})}},
		{"Value #B", []Series{at(2, map[string]string{"run": "r1"})}},
		// Nothing to say is no table, and takes no label from the others.
		{"Value #C", nil},
		{"Value #D", []Series{at(3, map[string]string{"run": "r1", "owner": "a"}), at(4, map[string]string{"run": "r1", "owner": "b"})}},
	})
	assert.Equal(t, []Line{
		{map[string]string{"run": "r1", "state": "running", "owner": "a"}, map[string]float64{"Value #A": 1, "Value #B": 2, "Value #D": 3}},
		{map[string]string{"run": "r2", "state": "ended"}, map[string]float64{"Value #A": 1}},
		{map[string]string{"run": "r1", "owner": "b"}, map[string]float64{"Value #D": 4}},
	}, lines)
}

func TestExpand(t *testing.T) {
	board := Dashboard{}
	board.Templating.List = []Variable{{Name: "run", AllValue: ".*"}, {Name: "service", AllValue: ".*"}}
	now := time.Now()
	view := View{Choices: map[string]string{"run": "r1"}, Start: now.Add(-time.Hour), End: now, Step: time.Minute}
	assert.Equal(t,
		`label_replace(rate(x{run=~"r1",job=~".*"}[75s]), "a", "$1", "b", "(.*)") / y offset 3600s`,
		view.Expand(board, `label_replace(rate(x{run=~"$run",job=~"$service"}[$__rate_interval]), "a", "$1", "b", "(.*)") / y offset $__range`))
}
