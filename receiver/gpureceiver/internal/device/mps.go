package device

import "slices"

// MPSServer reports whether the process is a server of CUDA's Multi-Process Service (MPS),
// through which other processes use the GPU. The driver does not say so; the kernel has the
// first 15 bytes of its name, nvidia-cuda-mps-server.
func (p *Process) MPSServer() bool { return p.Details.Executable == "nvidia-cuda-mps" }

func (p *Process) mpsClient() bool { return !p.MPSServer() && slices.Contains(p.Types, "mps") }

// MarkServers sets Serves of the MPS servers whose clients are listed. If the driver counts
// use for the servers and for no client, it does not distinguish the clients, whose use is
// then unknown.
func (g *GPU) MarkServers() {
	var clients, busyServers, busyClients bool
	for i := range g.Processes {
		process := &g.Processes[i]
		busy, client := process.Utilization["general"] > 0, process.mpsClient()
		clients, busyClients = clients || client, busyClients || client && busy
		busyServers = busyServers || busy && process.MPSServer()
	}
	for i := range g.Processes {
		process := &g.Processes[i]
		process.Serves = clients && process.MPSServer()
		if busyServers && !busyClients && process.mpsClient() {
			process.Utilization = nil
		}
	}
}
