package anomalies

import (
	"context"
	"fmt"
	"time"
)

// servicesOfFleet are the services for every 100 runs.
var servicesOfFleet = []string{agent, taskWeaver, snakepit, tuft}

// trainingOfFleet are the systems of training runs, in turn.
var trainingOfFleet = []string{torchTel, ownLoop, torchTel, ownLoop, fx}

// health is what was reported of a fleet in which nothing was wrong.
type health struct {
	runs, services int
	lived          time.Duration
	spans          int
	false_         []*sighting
}

// watch lets a healthy fleet live. It must run in a synctest bubble.
func watch(ctx context.Context, seed int64, runs, services int, d, flush time.Duration) (*health, error) {
	w, err := newWorld(ctx, seed, flush)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		system := trainingOfFleet[i%len(trainingOfFleet)]
		w.train(system, i, w.places(system, i))
	}
	for i := range services {
		w.serve(servicesOfFleet[(i+int(seed))%len(servicesOfFleet)], i)
	}
	w.every(restartEvery, func() {
		w.collector.failures = w.collector.stop(ctx)
		w.in(between(w.random, 5*time.Second, restartMost), func() {
			if err := w.collector.start(ctx); err != nil {
				panic(err)
			}
		})
	})
	w.live(d)
	h := &health{runs: runs, services: services, lived: d, spans: w.spans, false_: w.collector.seen.all}
	if err := w.collector.stop(ctx); err != nil {
		return nil, fmt.Errorf("stop the collector: %w", err)
	}
	return h, w.collector.failures
}
