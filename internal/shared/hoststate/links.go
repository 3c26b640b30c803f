// Package hoststate reads what a host's kernel says about what its runs need: the ports of
// InfiniBand and RoCE, the PCIe links of GPUs and network adapters, and whether network file
// systems answer. What a host does not have, it has no values of.
package hoststate

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxEntries bounds what is used of a directory.
const maxEntries = 1024

// Port is a port of an InfiniBand or RoCE adapter.
type Port struct {
	// Up reports whether it is active.
	Up bool
	// Rate is its speed in bytes a second, 0 if unknown.
	Rate int64
	// Counts has the kinds of errors that it counts, also zeros, and as Waits the ticks for which
	// it had something to send and could not.
	Counts map[string]int64
}

// Waits is what of Port.Counts is no error.
const Waits = "port_xmit_wait"

// portCounts are the files of what a port counts, which name it.
var portCounts = [...]string{
	"counters/symbol_error", "counters/link_error_recovery", "counters/link_downed",
	"counters/port_rcv_errors", "counters/port_xmit_discards", "counters/" + Waits,
	"hw_counters/out_of_sequence", "hw_counters/packet_seq_err",
	"hw_counters/rnr_nak_retry_err", "hw_counters/local_ack_timeout_err",
}

// Device is a GPU or a network adapter on PCIe.
type Device struct {
	// GPU is false for a network adapter.
	GPU bool
	// Link has the speed and the width of its link, and Most those that it can have, such as
	// 32.0 GT/s PCIe x16; "" if unknown. A GPU without work lowers the speed.
	Link, Most string
	// Counts has the errors of advanced error reporting (AER): correctable, nonfatal and fatal.
	// It is empty where the kernel does not report them.
	Counts map[string]int64
}

// Links returns the ports, by device and number such as mlx5_0/1, and the PCIe devices, by the
// address of their function such as 0000:19:00.0, of the host whose root directory is mounted at
// rootPath, "" for /.
func Links(rootPath string) (ports map[string]Port, devices map[string]Device) {
	ports, devices = make(map[string]Port), make(map[string]Device)
	s, err := OpenSys(rootPath)
	if err != nil {
		return ports, devices
	}
	defer func() { _ = s.Close() }()
	for _, driver := range [...]string{"nvidia", "amdgpu"} {
		for _, gpu := range s.Devices(driver) {
			devices[gpu] = s.device("bus/pci/devices/"+gpu, true)
		}
	}
	for _, adapter := range s.List("class/infiniband") {
		folder := "class/infiniband/" + adapter
		for _, port := range s.List(folder + "/ports") {
			ports[adapter+"/"+port] = s.port(folder + "/ports/" + port)
		}
		if address, err := s.Readlink(folder + "/device"); err == nil { // Soft-RoCE has none
			devices[path.Base(address)] = s.device(folder+"/device", false)
		}
	}
	return ports, devices
}

// Sys is the file system in which the kernel describes devices.
type Sys struct{ *os.Root }

// OpenSys opens it below the host's root directory, which is mounted at rootPath, "" for /.
func OpenSys(rootPath string) (*Sys, error) {
	root, err := os.OpenRoot(filepath.Join("/", rootPath, "sys"))
	return &Sys{root}, err
}

func (s *Sys) port(folder string) Port {
	p := Port{Up: strings.HasPrefix(s.Text(folder+"/state"), "4:"), Counts: make(map[string]int64)} // such as 4: ACTIVE
	rate, _, _ := strings.Cut(s.Text(folder+"/rate"), " ")                                          // such as 400 Gb/sec (4X NDR)
	if gigabits, err := strconv.ParseFloat(rate, 32); err == nil && gigabits > 0 && gigabits < 1e6 {
		p.Rate = int64(gigabits * 1e9 / 8)
	}
	for _, file := range portCounts {
		count(p.Counts, path.Base(file), s.Text(folder+"/"+file))
	}
	return p
}

func (s *Sys) device(folder string, gpu bool) Device {
	link := func(of string) string {
		return strings.TrimSuffix(s.Text(folder+"/"+of+"_link_speed")+" x"+s.Text(folder+"/"+of+"_link_width"), " x")
	}
	d := Device{GPU: gpu, Link: link("current"), Most: link("max"), Counts: make(map[string]int64)}
	for _, kind := range [...]string{"correctable", "nonfatal", "fatal"} {
		_, sum, _ := strings.Cut(s.Text(folder+"/aer_dev_"+kind), "\nTOTAL_ERR_") // the last line, such as TOTAL_ERR_COR 7
		_, sum, _ = strings.Cut(sum, " ")
		count(d.Counts, kind, sum)
	}
	return d
}

// Devices returns the addresses on the PCI bus of what a driver has, in order.
func (s *Sys) Devices(driver string) []string {
	return slices.DeleteFunc(s.List("bus/pci/drivers/"+driver), func(name string) bool {
		return !strings.Contains(name, ":") // a file of the driver
	})
}

// count adds a count that is a number.
func count(counts map[string]int64, kind, text string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		counts[kind] = n
	}
}

// List returns the first entries of a directory in order.
func (s *Sys) List(name string) []string {
	entries, _ := fs.ReadDir(s.FS(), name) // what could be read counts
	return mlattr.Mapped(entries[:min(len(entries), maxEntries)], fs.DirEntry.Name)
}

// Text returns the text of a file, "" if it cannot be read: drivers refuse to read values that
// a device does not have. The kernel bounds it.
func (s *Sys) Text(name string) string {
	raw, _ := fs.ReadFile(s.FS(), name)
	return strings.ToValidUTF8(strings.TrimSpace(string(raw)), "")
}
