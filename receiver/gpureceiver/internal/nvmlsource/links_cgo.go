//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const kibibyte = 1024

// linkCalls are the calls about PCIe and NVLink.
func (g *boundGPU) linkCalls(fields *fieldBatch) []call {
	bytes := func(quantity *device.Quantity, total, single uint32) call {
		return part("nvlink_io", quantity, either(fields.field(total, allLinks, kibibyte), fields.sum(single)))
	}
	errors := func(kind string, id uint32) call {
		return part("nvlink_errors", device.NVLinkErrors.Member(kind), fields.field(id, 0, 1))
	}
	return []call{
		number("pcie_link_generation", device.PCIeGeneration, whole(g, "nvmlDeviceGetCurrPcieLinkGeneration", g.device.GetCurrPcieLinkGeneration, 1)),
		number("pcie_link_generation", device.PCIeMaxGeneration, whole(g, "nvmlDeviceGetMaxPcieLinkGeneration", g.device.GetMaxPcieLinkGeneration, 1)),
		number("pcie_link_width", device.PCIeWidth, whole(g, "nvmlDeviceGetCurrPcieLinkWidth", g.device.GetCurrPcieLinkWidth, 1)),
		number("pcie_link_width", device.PCIeMaxWidth, whole(g, "nvmlDeviceGetMaxPcieLinkWidth", g.device.GetMaxPcieLinkWidth, 1)),
		g.throughput(device.PCIeReceiveRate, nvml.PCIE_UTIL_RX_BYTES),
		g.throughput(device.PCIeTransmitRate, nvml.PCIE_UTIL_TX_BYTES),
		part("pcie_replays", device.PCIeReplays, fields.field(fieldPCIeReplays, 0, 1)),
		errors("crc_flit", fieldNVLinkCRCFlit),
		errors("crc_data", fieldNVLinkCRCData),
		errors("replay", fieldNVLinkReplay),
		errors("recovery", fieldNVLinkRecovery),
		errors("ecc", fieldNVLinkECC),
		bytes(device.NVLinkReceived, fieldNVLinkDataRX, fieldNVLink5RX),
		bytes(device.NVLinkTransmitted, fieldNVLinkDataTX, fieldNVLink5TX),
		{
			name: "nvlink_links", fields: []fieldKey{linkCount}, yields: []*device.Quantity{device.NVLinkActiveLinks, device.NVLinkInactiveLinks},
			read: func() (func(*device.Readings), status) { return g.linkStates(fields) },
		},
	}
}

// throughput is the slow call for the present rate of PCIe in one direction.
// NVML gives kilobytes of 1000 bytes per second.
func (g *boundGPU) throughput(quantity *device.Quantity, direction nvml.PcieUtilCounter) call {
	c := number("pcie_throughput", quantity, whole(g, "nvmlDeviceGetPcieThroughput",
		func() (uint32, nvml.Return) { return g.device.GetPcieThroughput(direction) }, 1000))
	c.slow = true
	return c
}

// linkStates counts the NVLinks that are up and down. If the GPU does not report
// their number, it reads them until there is no next one.
func (g *boundGPU) linkStates(fields *fieldBatch) (func(*device.Readings), status) {
	if !g.has("nvmlDeviceGetNvLinkState") {
		return nil, statusFunctionNotFound
	}
	links, result := fields.links()
	if result != statusSuccess {
		links = maxLinks
	}
	var active, inactive int
	result = statusNotSupported
	for link := range links {
		state, ret := g.device.GetNvLinkState(int(link))
		answer := statusOf(ret)
		if answer == statusInvalidArgument {
			break
		}
		if answer != statusSuccess {
			if active+inactive == 0 {
				result = answer
			}
			break
		}
		result = statusSuccess
		if state == nvml.FEATURE_ENABLED {
			active++
		} else {
			inactive++
		}
	}
	return func(r *device.Readings) {
		r.NVLink.ActiveLinks, r.NVLink.InactiveLinks = device.Read(float64(active)), device.Read(float64(inactive))
	}, result
}
