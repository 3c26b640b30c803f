package kafka

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// trial is something on the way that is away for a while.
type trial struct {
	fault func(*fleet)
	// once reports whether nothing may be delivered twice, and exact whether ml_metrics
	// must count each span once.
	once, exact bool
}

var trials = map[string]trial{
	"nothing fails": {once: true, exact: true, fault: func(f *fleet) {
		f.arrives(5000, f.gateways...)
	}},
	"broker killed": {exact: true, fault: func(f *fleet) {
		f.kafka.Kill(f.T)
		f.acknowledges(5000)
		f.kafka.Restart(f.T)
		f.arrives(5000, f.gateways...)
	}},
	"agent killed": {exact: true, fault: func(f *fleet) {
		f.agent.Kill(f.T)
		f.startAgent()
		f.arrives(5000, f.gateways...)
	}},
	"gateway killed and restarted": {fault: func(f *fleet) {
		f.kill(f.gateways[1])
		f.start(f.gateways[1])
		f.arrives(5000, f.gateways...)
	}},
	"gateway killed and replaced": {fault: func(f *fleet) {
		f.kill(f.gateways[1])
		f.members(f.gateways[0])
		f.arrives(5000, f.gateways[0])
		f.start(f.gateways[1])
		f.members(f.gateways...)
		f.arrives(5000, f.gateways...)
	}},
	"gateway stopped and restarted": {once: true, fault: func(f *fleet) {
		f.stop(f.gateways[1])
		f.start(f.gateways[1])
		f.arrives(5000, f.gateways...)
	}},
	"gateway joins": {once: true, exact: true, fault: func(f *fleet) {
		f.join()
		f.members(f.gateways...)
		f.arrives(5000, f.gateways...)
	}},
}

// No acknowledged span, point or log record is lost, whatever fails.
func TestFaults(t *testing.T) {
	for name, trial := range trials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.sending(func() { trial.fault(f) })
			all, counted := f.settle()
			for signal, one := range all {
				t.Logf("%s: %s: %+v", name, names[signal], one)
				if trial.once {
					assert.Zero(t, one.same+one.moved, "delivered twice")
				}
			}
			t.Logf("%s: counted beyond each span once: %d", name, counted-all[traces].acknowledged)
			if trial.exact {
				assert.Equal(t, all[traces].acknowledged, counted, "batches of ml_metrics")
			}
		})
	}
}
