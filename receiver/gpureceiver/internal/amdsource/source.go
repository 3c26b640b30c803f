// Package amdsource reads AMD GPUs from what the kernel's driver amdgpu writes below /sys: no
// library is needed. It was tried with trees of files only, and on no AMD GPU.
package amdsource

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/attribution"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// Options are the settings of a Source.
type Options struct {
	// RootPath is where the host's root directory is mounted. Empty means /.
	RootPath string
	// Attribution describes processes and the GPUs' owners.
	Attribution *attribution.Attribution
	// Timeout is the limit for the files of one GPU at one reading.
	Timeout time.Duration
	// SlowInterval is the least time between two lists of processes.
	SlowInterval time.Duration
	// Wants reports whether a quantity is needed.
	Wants  func(*device.Quantity) bool
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Source reads AMD GPUs. One goroutine at a time uses it.
type Source struct {
	opts Options
	// gpus are the known GPUs by their addresses.
	gpus map[string]*gpu
	// listed is when the processes were listed.
	listed time.Time
}

// gpu is a known GPU.
type gpu struct {
	node
	identity device.Identity
	// reading yields the answer of a question that is not over. It is nil if there is none:
	// a driver can let a reader wait without end.
	reading   chan device.GPU
	processes []device.Process
}

// New returns a Source that has read nothing.
func New(opts Options) *Source { return &Source{opts: opts, gpus: make(map[string]*gpu)} }

// Add adds the host's AMD GPUs to a snapshot, in the order of their addresses on the PCI bus.
func (s *Source) Add(ctx context.Context, snapshot *device.Snapshot) {
	sys, err := hoststate.OpenSys(s.opts.RootPath)
	if err != nil {
		return
	}
	defer func() { _ = sys.Close() }() // it was only read
	var present []*gpu
	for i, address := range sys.Devices("amdgpu") {
		present = append(present, s.known(sys, address, i))
	}
	if len(present) == 0 {
		return
	}
	if now := s.opts.Now(); s.opts.Wants(device.ProcessList) && now.Sub(s.listed) >= s.opts.SlowInterval {
		s.listed = now
		s.list(sys, present)
	}
	for _, g := range present {
		g.ask(s.opts.RootPath, s.opts.Wants)
	}
	limit, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for _, g := range present {
		read, answered := g.answer(limit)
		if ctx.Err() != nil {
			return // the receiver stops, which says nothing about the GPU
		}
		if !answered {
			read = device.GPU{Identity: g.identity, Unresponsive: true}
		}
		read.ProcessesKnown, read.Processes = !s.listed.IsZero(), s.opts.Attribution.Alive(g.processes)
		snapshot.GPUs = append(snapshot.GPUs, read)
	}
	s.opts.Attribution.Complete(snapshot)
}

// known returns the GPU at an address.
func (s *Source) known(sys *hoststate.Sys, address string, index int) *gpu {
	g := s.gpus[address]
	if g == nil {
		g = &gpu{node: nodeAt(sys, address)}
		g.identity = identify(sys, address, &g.node)
		s.gpus[address] = g
		s.opts.Logger.Info("Reads an AMD GPU from the kernel's files; its readings were never compared with a real GPU",
			zap.String("hw.id", g.identity.ID), zap.String("pci.bus_id", address))
	}
	g.identity.Index = index
	return g
}

// node is what the driver's compute part (KFD) says about a GPU. The zero node is unknown.
type node struct {
	// number is its number in names of files, and unique its number of the GPU.
	number, unique string
	architecture   string
}

// nodes is the folder of the nodes, of which processors are some.
const nodes = "class/kfd/kfd/topology/nodes"

// nodeAt returns the first node of the GPU at an address. A GPU in parts has several.
func nodeAt(sys *hoststate.Sys, address string) node {
	for _, name := range sys.List(nodes) {
		properties := make(map[string]uint64)
		for line := range strings.Lines(sys.Text(nodes + "/" + name + "/properties")) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if number, err := strconv.ParseUint(text, 10, 64); err == nil {
				properties[key] = number
			}
		}
		// Bits of the location, from the highest: bus, device and function.
		at := properties["location_id"]
		if properties["simd_count"] == 0 || fmt.Sprintf("%04x:%02x:%02x.%x", properties["domain"], at>>8&0xff, at>>3&0x1f, at&7) != address {
			continue
		}
		found := node{number: sys.Text(nodes + "/" + name + "/gpu_id")}
		if unique := properties["unique_id"]; unique != 0 {
			found.unique = fmt.Sprintf("%016x", unique)
		}
		if target := properties["gfx_target_version"]; target != 0 { // 90010 is gfx90a
			found.architecture = fmt.Sprintf("gfx%d%x%x", target/10000, target/100%100, target%100)
		}
		return found
	}
	return node{}
}

// identify returns the identity of the GPU at an address. Its id is as ROCm spells it, or its
// address where it has no number of its own.
func identify(sys *hoststate.Sys, address string, n *node) device.Identity {
	folder := devices + address + "/"
	identity := device.Identity{
		ID: address, Vendor: device.AMD, PCIBusID: address, Architecture: n.architecture,
		Name: sys.Text(folder + "product_name"), Serial: sys.Text(folder + "serial_number"), VBIOS: sys.Text(folder + "vbios_version"),
	}
	if unique := cmp.Or(sys.Text(folder+"unique_id"), n.unique); unique != "" {
		identity.ID = "GPU-" + unique
	}
	identity.NUMANode = device.NUMANodeOf(sys.Text(folder + "numa_node"))
	return identity
}

// maxProcesses bounds the processes of one GPU.
const maxProcesses = 1024

// list lists the processes that have memory on each GPU, as ROCm's runtime makes them known.
func (s *Source) list(sys *hoststate.Sys, present []*gpu) {
	const folder = "class/kfd/kfd/proc"
	for _, g := range present {
		g.processes = nil
	}
	for _, name := range sys.List(folder) {
		pid, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			continue
		}
		for _, g := range present {
			if g.number == "" || len(g.processes) >= maxProcesses {
				continue
			}
			memory, err := strconv.ParseUint(sys.Text(folder+"/"+name+"/vram_"+g.number), 10, 63)
			if err == nil && memory > 0 {
				g.processes = append(g.processes, device.Process{PID: uint32(pid), Types: device.ProcessTypes[:1], Memory: device.Read(float64(memory))})
			}
		}
	}
	for _, g := range present {
		g.processes = s.opts.Attribution.Describe(g.processes)
	}
}
