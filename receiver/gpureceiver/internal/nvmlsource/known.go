package nvmlsource

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxFormer bounds the GPUs that are remembered between sessions.
const maxFormer = 2 * maxGPUs

// knownGPU is a GPU whose identity is known. It stays listed while its calls
// fail.
type knownGPU struct {
	handle gpu
	// calls are the calls of handle.
	calls    []call
	identity device.Identity
	// powerStatus is the file with the kernel's power status.
	powerStatus string
	// state is the last logged state of the GPU, empty while it answers.
	state status

	// session is the session of handle.
	session *session
	// fastCalls and slowCalls are the parts of calls.
	fastCalls, slowCalls []call
	// slow has the answers of the slow calls.
	slow *slowAnswers
	// children are its MIG devices, and withoutMIG is true for a GPU that can
	// have none. leads is true for the MIG device that reports the values of
	// its whole GPU instance.
	children          []*knownGPU
	withoutMIG, leads bool
	// divided is true for a GPU whose MIG devices are listed: they report its
	// processes.
	divided bool
	// eventsTried is true once the GPU was registered for events, and
	// eventsKnown if that succeeded.
	eventsTried, eventsKnown bool
}

// subject is the subject of calls about the GPU. A MIG device has its GPU's,
// because both hang together.
func (k *knownGPU) subject() string {
	if k.identity.MIG != nil {
		return k.identity.MIG.Parent
	}
	return k.identity.ID
}

// adopt prepares the GPUs that are new in this session.
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
