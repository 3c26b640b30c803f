package mlattr

// Names of metrics and attributes that the nccl receiver writes and that other
// components read. The receiver's metadata.yaml is held against them.
const (
	// NCCLCommunicatorSize is the number of ranks of a communicator.
	NCCLCommunicatorSize = "nccl.communicator.size"
	// NCCLRankState is 1 for each rank that is missing, does not respond or is
	// behind. Its attribute with the state has the same name.
	NCCLRankState = "nccl.rank.state"
	// NCCLRankHost is the address of the rank's host.
	NCCLRankHost = "nccl.rank.host"
)

// The states of NCCLRankState.
const (
	NCCLMissing      = "missing"
	NCCLUnresponsive = "unresponsive"
	NCCLDead         = "dead"
	NCCLBehind       = "behind"
)
