package kernellog

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func known(value int64) workload.Number { return workload.Number{Value: value, Known: true} }

// reported are lines of real hosts, as issues and tests of public projects have them.
// The domain of a few is shortened there, and is 0000 here.
var reported = map[string]struct {
	lines    []string
	expected []Report
}{
	"a timeout of the system processor": {
		lines: []string{"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."},
		expected: []Report{{
			Address: "0000:9b:00", Event: device.Event{Code: 119, PID: known(2024380), Process: "nvidia-smi",
				Text: "Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."},
		}},
	},
	"a link of NVLink 5": {
		lines:    []string{"NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"},
		expected: []Report{{Address: "0009:01:00", Event: device.Event{Code: 149, Text: "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"}}},
	},
	"a new recovery action": {
		lines: []string{
			"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
			"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)",
		},
		expected: []Report{
			{Address: "0009:01:00", Event: device.Event{Code: 154, Text: "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"}},
			{Address: "0009:01:00", Event: device.Event{Code: 154, Text: "GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)"}},
		},
	},
	"a unit of NVLink 5": {
		lines:    []string{"NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"},
		expected: []Report{{Address: "0018:01:00", Event: device.Event{Code: 145, Text: "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"}}},
	},
	"work that was removed": {
		lines:    []string{"NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149"},
		expected: []Report{{Address: "0000:dc:00", Event: device.Event{Code: 45, PID: known(1818990), Process: "python3", Text: "Ch 00000001 caused by previous Xid 149"}}},
	},
	"a program's end": {
		lines:    []string{"NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008"},
		expected: []Report{{Address: "0000:00:05", Event: device.Event{Code: 43, PID: known(1045242), Process: "pt_main_thread", Text: "Ch 00000008"}}},
	},
	"a page fault": {
		lines: []string{"NVRM: Xid (PCI:0000:00:05): 31, pid=2512125, name=python3.10, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"},
		expected: []Report{{
			Address: "0000:00:05", Event: device.Event{Code: 31, PID: known(2512125), Process: "python3.10",
				Text: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"},
		}},
	},
	"an unknown process": {
		lines: []string{
			"NVRM: Xid (PCI:0000:00:05): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No",
			"NVRM: Xid (PCI:0000:00:05): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter",
		},
		expected: []Report{
			{Address: "0000:00:05", Event: device.Event{Code: 94, Text: "Contained: SM (0x1). RST: No, D-RST: No"}},
			{Address: "0000:00:05", Event: device.Event{Code: 13, Text: "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter"}},
		},
	},
	"a change of programs": {
		lines:    []string{"NVRM: Xid (PCI:0000:00:05): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005"},
		expected: []Report{{Address: "0000:00:05", Event: device.Event{Code: 109, PID: known(1797828), Process: "pt_main_thread", Text: "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005"}}},
	},
	"a GPU that fell off the bus": {
		lines: []string{
			"NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
			"NVRM: GPU 0000:18:00.0: GPU has fallen off the bus",
		},
		expected: []Report{
			{Address: "0000:01:00", Event: device.Event{Code: 79, Text: "GPU has fallen off the bus."}},
			{Address: "0000:18:00", Event: device.Event{Code: 79, Text: "GPU has fallen off the bus"}},
		},
	},
	"an NVSwitch that continues": {
		lines: []string{
			"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ interrupt",
			"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44 Sub-engine instance 00",
			"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Data {0x0000002c, 0x00000000, 0x00000000}",
		},
		expected: []Report{{
			Address: "0000:04:00", Event: device.Event{Code: 22013, Text: "Link 44 Minion Link DLREQ interrupt",
				Switch: &device.Switch{Index: 3, PCIBusID: "0000:04:00.0", Link: known(44)}},
		}},
	},
	"an NVSwitch that fails": {
		lines: []string{"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"},
		expected: []Report{{
			Address: "0000:00:00", Event: device.Event{Code: 20034, Text: "Link 30 LTSSM Fault Up",
				Switch: &device.Switch{PCIBusID: "0000:00:00.0", Fatal: true, Link: known(30)}},
		}},
	},
	"a GPU's name": {
		lines:    []string{"NVRM: GPU at PCI:0000:00:05: GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374"},
		expected: []Report{{Address: "0000:00:05", UUID: "GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374"}},
	},
	// Written from the driver's source, open-gpu-kernel-modules' kernel_rc.c.
	"a MIG device": {
		lines: []string{
			"NVRM: Xid (PCI:0000:85:00 GPU-I:05 GPU-CI:00): 13, pid=7, name=python3, Graphics Exception",
			"NVRM: Xid (PCI:0000:85:00 GPU-I:05): 94, pid='<unknown>', name=<unknown>, Contained",
		},
		expected: []Report{
			{Address: "0000:85:00", Event: device.Event{Code: 13, GPUInstance: known(5), ComputeInstance: known(0), PID: known(7), Process: "python3", Text: "Graphics Exception"}},
			{Address: "0000:85:00", Event: device.Event{Code: 94, GPUInstance: known(5), Text: "Contained"}},
		},
	},
}

func TestLines(t *testing.T) {
	for name, test := range reported {
		t.Run(name, func(t *testing.T) {
			var reports []Report
			for _, line := range test.lines {
				if report, found := readLine(line); found {
					reports = append(reports, report)
				}
			}
			assert.Equal(t, test.expected, reports)
		})
	}
}

// A line that is nearly one of the drivers' reports nothing.
func TestLinesThatReportNothing(t *testing.T) {
	for _, line := range []string{
		"", "NVRM: ", "NVRM: Xid (", "NVRM: Xid (PCI:0000:9b:00): ", "NVRM: Xid (PCI:0000:9b:00): many, x",
		"NVRM: Xid (PCI:0000:9b): 79, x", "NVRM: Xid (PCI:000g:9b:00): 79, x", "NVRM: Xid (PCI:0000:9b:00 79, x",
		"NVRM: Xid (PCI:0000:9b:00): 99999999999999999999, x", "NVRM: Xid (PCI:0000:9b:00): -1, x", "NVRM: Xid (): 79, x",
		"a program wrote NVRM: Xid (PCI:0000:9b:00): 79, x",
		"NVRM: GPU 0000:18:00.0: RmInitAdapter failed!", "NVRM: GPU here: GPU has fallen off the bus",
		"NVRM: GPU at PCI:0000:00:05: the GPU-", "NVRM: GPU at nowhere: GPU-3c1d5f0a-7b42-4e19-8a6d-52f0c9e1b374",
		"NVRM: fallen off the bus and is not responding to commands.",
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44",
		"nvidia-nvswitch: SXid (PCI:0000:04:00.0): 22013, Fatal, x", "nvidia-nvswitch3: SXid (PCI:04:00.0): 22013, Fatal, x",
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0: 22013, Fatal, x", "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): x, Fatal, x",
		"nvidia-nvswitch3: open (major=508)",
	} {
		_, found := readLine(line)
		assert.False(t, found, line)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	for _, line := range []string{
		"NVRM: Xid (PCI:0000:9b:00): 13, pid=1, name=" + strings.Repeat("n", 5000) + ", " + strings.Repeat("x", 5000),
		"NVRM: GPU 0000:18:00.0: GPU has fallen off the bus" + strings.Repeat("x", 5000),
		"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Fatal, " + strings.Repeat("x", 5000),
	} {
		report, found := readLine(line)
		require.True(t, found, line)
		assert.Len(t, report.Text, maxText)
		assert.LessOrEqual(t, len(report.Process), maxProcess)
	}
}

func TestAddress(t *testing.T) {
	for text, expected := range map[string]string{
		"0000:9b:00.0": "0000:9b:00", "00000000:9B:00.0": "0000:9b:00", "PCI:0009:01:00": "0009:01:00", "10000:01:00.0": "",
		"9b:00.0": "", "": "", "::": "",
	} {
		found, ok := Address(text)
		assert.Equal(t, expected, found, text)
		assert.Equal(t, expected != "", ok, text)
	}
}

// Only what the kernel itself wrote is read.
func TestRecords(t *testing.T) {
	const xid = "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."
	for record, expected := range map[string]string{
		"3,812,5141900,-;" + xid + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:9b:00.0\n": xid,
		"6,2,0,-;usb 1-1: Product: x\\x0a" + xid:                                   "usb 1-1: Product: x\\x0a" + xid,
		"12,3,0,-;" + xid:                                                          "",
		"11,4,0,-;" + xid:                                                          "",
		xid:                                                                        "",
		"x,1,0,-;" + xid:                                                           "",
		"3,x,0,-;" + xid:                                                           "",
		"3;" + xid:                                                                 "",
		"":                                                                         "",
	} {
		line, _, _ := lineOf(record)
		assert.Equal(t, expected, line, record)
	}
}

// FuzzRecord holds that any record is read without a panic, and that what it reports
// is within its bounds.
func FuzzRecord(f *testing.F) {
	for _, test := range reported {
		for _, line := range test.lines {
			f.Add("3,1,2,-;" + line + "\n")
		}
	}
	f.Fuzz(func(t *testing.T, record string) {
		line, _, _ := lineOf(record)
		if report, found := readLine(line); found {
			address, ok := Address(report.Address)
			assert.True(t, ok)
			assert.Equal(t, report.Address, address)
			assert.LessOrEqual(t, len(report.Text), maxText)
			assert.LessOrEqual(t, len(report.Process), maxProcess)
			assert.Less(t, report.Code, uint64(1_000_000))
			assert.True(t, report.UUID == "" || len(report.UUID) == 40)
			assert.True(t, utf8.ValidString(report.Text) && utf8.ValidString(report.Process))
		}
	})
}
