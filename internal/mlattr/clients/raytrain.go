package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// rayTrain is the vocabulary of Ray Train, whose metrics come from Ray's
// exporter for Prometheus with "ray_" before their names. The points name the
// run and the rank, and the times are gauges that only grow.
func rayTrain() table.Table {
	return table.Table{
		Name:           "ray_train",
		Packages:       []string{"ray"},
		Title:          "Ray Train",
		Page:           "https://docs.ray.io/en/latest/train/user-guides/monitor-your-application.html",
		KeyPrefixes:    []string{"ray_train_"},
		MetricPrefixes: []string{"ray_train_"},
		Point: []table.Alias{
			{Source: "ray_train_run_id", Canonical: mlattr.RunID},
			{Source: "ray_train_run_name", Canonical: mlattr.JobName},
			{Source: "ray_train_worker_world_rank", Canonical: mlattr.RankGlobal},
		},
	}
}
