package amdsource

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// devices is the folder of the devices on the PCI bus.
const devices = "bus/pci/devices/"

// file is a file with a number, in a unit.
type file struct {
	name string
	of   *device.Quantity
	unit float64
}

// files are those of a GPU's folder, and sensors those of the folder of its sensors, of which
// one later in the list counts where both are. See the kernel's documentation of amdgpu.
var (
	files = []file{
		{"gpu_busy_percent", device.GeneralUtilization, 0.01},
		{"mem_busy_percent", device.MemoryControllerUtilization, 0.01},
		{"mem_info_vram_total", device.MemoryTotal, 1},
		{"mem_info_vram_used", device.MemoryUsed, 1},
		{"pcie_replay_count", device.PCIeReplays, 1},
		{"current_link_width", device.PCIeWidth, 1},
		{"max_link_width", device.PCIeMaxWidth, 1},
	}
	sensors = []file{
		{"power1_input", device.PowerDraw, 1e-6},
		{"power1_average", device.PowerDraw, 1e-6},
		{"power1_cap", device.PowerLimit, 1e-6},
		{"energy1_input", device.Energy, 1e-6},
		{"freq1_input", device.ClockFrequencies.Member("graphics"), 1},
		{"freq2_input", device.ClockFrequencies.Member("memory"), 1},
		{"pwm1", device.FanSpeeds.Members[0], 1.0 / 255},
	}
)

// thermal is the sensors of a GPU's temperature, of which one later in the list counts where
// several are: the hottest place has a limit on every GPU, its edge does not.
var thermal = []string{"", "edge", "junction"}

// generations are the speeds of PCIe in transfers a second, in their order.
var generations = []string{"2.5 GT/s", "5.0 GT/s", "8.0 GT/s", "16.0 GT/s", "32.0 GT/s", "64.0 GT/s"}

// ask begins to read a GPU, unless the last question is not over. A suspended GPU is not
// read, because that would wake it.
func (g *gpu) ask(rootPath string, wants func(*device.Quantity) bool) {
	select {
	case <-g.reading: // late, so that it is old
		g.reading = nil
	default:
	}
	if g.reading != nil {
		return
	}
	answer, read := make(chan device.GPU, 1), device.GPU{Identity: g.identity}
	g.reading = answer
	go func() {
		defer func() { answer <- read }()
		sys, err := hoststate.OpenSys(rootPath)
		if err != nil {
			return
		}
		defer func() { _ = sys.Close() }() // it was only read
		folder := devices + read.PCIBusID + "/"
		if read.Asleep = sys.Text(folder+"power/runtime_status") == "suspended"; read.Asleep {
			return
		}
		r := reader{sys: sys, wants: wants, into: &read.Readings}
		r.numbers(folder, files)
		r.generation(device.PCIeGeneration, sys.Text(folder+"current_link_speed"))
		r.generation(device.PCIeMaxGeneration, sys.Text(folder+"max_link_speed"))
		for line := range strings.Lines(sys.Text(folder + "ras/umc_err_count")) { // ue: 0, then ce: 0
			kind, count, _ := strings.Cut(line, ":")
			r.store(map[string]*device.Quantity{"ue": device.ECCUncorrected, "ce": device.ECCCorrected}[kind], count, 1)
		}
		for _, name := range sys.List(folder + "hwmon") {
			r.numbers(folder+"hwmon/"+name+"/", sensors)
			r.temperatures(folder + "hwmon/" + name + "/")
		}
	}()
}

// answer returns the answer to the question, and whether there is one before ctx ends.
func (g *gpu) answer(ctx context.Context) (read device.GPU, answered bool) {
	select {
	case read = <-g.reading:
	default: // an answer that is there counts although ctx has ended
		select {
		case read = <-g.reading:
		case <-ctx.Done():
			return read, false
		}
	}
	g.reading = nil
	return read, true
}

// reader stores numbers that are wanted.
type reader struct {
	sys   *hoststate.Sys
	wants func(*device.Quantity) bool
	into  *device.Readings
}

// numbers reads the files of a folder.
func (r *reader) numbers(folder string, all []file) {
	for _, f := range all {
		if r.wants(f.of) {
			r.store(f.of, r.sys.Text(folder+f.name), f.unit)
		}
	}
}

// store stores a number, if the text is one. The quantity may be nil.
func (r *reader) store(of *device.Quantity, text string, unit float64) {
	if number, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && of != nil {
		of.Store(r.into, number*unit)
	}
}

// generation stores the generation of a link's speed, such as 16.0 GT/s PCIe.
func (r *reader) generation(of *device.Quantity, speed string) {
	if i := slices.IndexFunc(generations, func(name string) bool { return strings.HasPrefix(speed, name) }); i >= 0 {
		of.Store(r.into, float64(i+1))
	}
}

// temperatures reads the sensors of temperature, whose labels say where they are: in
// thousandths of a degree.
func (r *reader) temperatures(folder string) {
	const milli = 1e-3
	places := make(map[string]string)
	for _, number := range [...]string{"3", "2", "1"} {
		places[r.sys.Text(folder+"temp"+number+"_label")] = folder + "temp" + number
	}
	for _, place := range thermal {
		if at := places[place]; at != "" {
			r.store(device.GPUTemperature, r.sys.Text(at+"_input"), milli)
			r.store(device.SlowdownTemperature, r.sys.Text(at+"_crit"), milli)
			r.store(device.ShutdownTemperature, r.sys.Text(at+"_emergency"), milli)
		}
	}
	if at := places["mem"]; at != "" {
		r.store(device.MemoryTemperature, r.sys.Text(at+"_input"), milli)
	}
}
