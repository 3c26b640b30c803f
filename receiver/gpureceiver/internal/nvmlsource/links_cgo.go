//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// linkCalls are the calls about PCIe and NVLink.
func (g *gpu) linkCalls(fields *fieldBatch) []call {
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
		part("pcie_replays", device.PCIeReplays, fields.field(nvml.FI_DEV_PCIE_REPLAY_COUNTER, 0, 1)),
		errors("crc_flit", nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
		errors("crc_data", nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
		errors("replay", nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
		errors("recovery", nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
		errors("ecc", nvml.FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL),
		bytes(device.NVLinkReceived, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES),
		bytes(device.NVLinkTransmitted, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES),
		{
			name: "nvlink_links", fields: []fieldKey{linkCount}, yields: []*device.Quantity{device.NVLinkActiveLinks, device.NVLinkInactiveLinks},
			read: func(read *values) status { return g.linkStates(fields, read) },
		},
	}
}

// throughput is the slow call for the present rate of PCIe in one direction.
// NVML gives kilobytes of 1000 bytes per second.
func (g *gpu) throughput(quantity *device.Quantity, direction nvml.PcieUtilCounter) call {
	c := number("pcie_throughput", quantity, whole(g, "nvmlDeviceGetPcieThroughput",
		func() (uint32, nvml.Return) { return g.device.GetPcieThroughput(direction) }, 1000))
	c.slow = true
	return c
}

// linkStates counts the NVLinks that are up and down. If the GPU does not report
// their number, it reads them until there is no next one.
func (g *gpu) linkStates(fields *fieldBatch, read *values) status {
	if !g.has("nvmlDeviceGetNvLinkState") {
		return statusFunctionNotFound
	}
	links, result := fields.links()
	if result != statusSuccess {
		links = maxLinks
	}
	var active, all float64
	result = statusNotSupported
	for link := range links {
		state, ret := g.device.GetNvLinkState(int(link))
		if ret != nvml.SUCCESS {
			if all == 0 && ret != nvml.ERROR_INVALID_ARGUMENT {
				result = statusOf(ret)
			}
			break
		}
		result = statusSuccess
		all++
		active += flag(state == nvml.FEATURE_ENABLED)
	}
	read.add(device.NVLinkActiveLinks, active)
	read.add(device.NVLinkInactiveLinks, all-active)
	return result
}
