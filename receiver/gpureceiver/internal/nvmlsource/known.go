package nvmlsource

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxFormer bounds the GPUs that are remembered from one session to the next.
const maxFormer = 2 * maxGPUs

// knownGPU is a GPU whose identity is known. It stays listed while its calls
// fail.
type knownGPU struct {
	handle gpu
	// calls are the handle's.
	calls    []call
	identity device.Identity
	// powerStatus is the file that says whether it sleeps.
	powerStatus string
	// state is what was last logged about the GPU: empty while it answers.
	state status

	// session is the one that the handle is of.
	session *session
	// fastCalls and slowCalls are the parts of calls.
	fastCalls, slowCalls []call
	// slow is what the slow calls have told.
	slow *slowAnswers
	// children are its MIG devices, and withoutMIG is true for a GPU that can
	// have none. leads is true for the MIG device that tells what belongs to
	// its whole GPU instance.
	children          []*knownGPU
	withoutMIG, leads bool
	// divided is true for a GPU whose MIG devices are listed: its processes
	// are theirs.
	divided bool
	// eventsTried is true once the GPU was asked for its events, and
	// eventsKnown where it tells them.
	eventsTried, eventsKnown bool
}

// subject is what a call about the GPU is about. A MIG device hangs with its
// GPU.
func (k *knownGPU) subject() string {
	if k.identity.MIG != nil {
		return k.identity.MIG.Parent
	}
	return k.identity.ID
}

// adopt prepares the GPUs that were listed for the first time in this session.
func (s *Source) adopt() {
	if s.session == nil {
		s.session = &session{}
	}
	divided := make(map[string]bool)
	for _, known := range s.gpus {
		if known.identity.MIG != nil {
			divided[known.identity.MIG.Parent] = true
		}
	}
	for _, known := range s.gpus {
		known.divided = divided[known.identity.ID]
		if known.session != nil {
			continue
		}
		known.session = s.session
		known.powerStatus = powerStatusPath(s.opts.RootPath, known.identity.PCIBusID)
		for _, c := range known.calls {
			if c.slow {
				known.slowCalls = append(known.slowCalls, c)
			} else {
				known.fastCalls = append(known.fastCalls, c)
			}
		}
		known.slow = &slowAnswers{}
		if before := s.former[known.identity.ID]; before != nil {
			known.slow, known.state = before.slow, before.state
		}
		if len(s.former) >= maxFormer {
			clear(s.former)
		}
		s.former[known.identity.ID] = known
	}
}
