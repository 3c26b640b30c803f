package gpureceiver

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	receive  = metadata.AttributeNetworkIoDirectionReceive
	transmit = metadata.AttributeNetworkIoDirectionTransmit
	current  = metadata.AttributeNvidiaGpuPcieLinkBoundCurrent
	largest  = metadata.AttributeNvidiaGpuPcieLinkBoundMax
)

// pcieMetrics are those about the link to the host.
func pcieMetrics() []gpuMetric {
	return []gpuMetric{
		labelled(declared.HwGpuIo.Name, device.PCIeReceived, (*builder).RecordHwGpuIoDataPoint, receive),
		labelled(declared.HwGpuIo.Name, device.PCIeTransmitted, (*builder).RecordHwGpuIoDataPoint, transmit),
		labelled(declared.NvidiaGpuPcieThroughput.Name, device.PCIeReceiveRate, (*builder).RecordNvidiaGpuPcieThroughputDataPoint, receive),
		labelled(declared.NvidiaGpuPcieThroughput.Name, device.PCIeTransmitRate, (*builder).RecordNvidiaGpuPcieThroughputDataPoint, transmit),
		plain(declared.NvidiaGpuPcieReplays.Name, device.PCIeReplays, (*builder).RecordNvidiaGpuPcieReplaysDataPoint),
		labelled(declared.NvidiaGpuPcieLinkGeneration.Name, device.PCIeGeneration, (*builder).RecordNvidiaGpuPcieLinkGenerationDataPoint, current),
		labelled(declared.NvidiaGpuPcieLinkGeneration.Name, device.PCIeMaxGeneration, (*builder).RecordNvidiaGpuPcieLinkGenerationDataPoint, largest),
		labelled(declared.NvidiaGpuPcieLinkWidth.Name, device.PCIeWidth, (*builder).RecordNvidiaGpuPcieLinkWidthDataPoint, current),
		labelled(declared.NvidiaGpuPcieLinkWidth.Name, device.PCIeMaxWidth, (*builder).RecordNvidiaGpuPcieLinkWidthDataPoint, largest),
	}
}

// nvlinkMetrics are those about the links to other GPUs and to switches.
func nvlinkMetrics() []gpuMetric {
	return append([]gpuMetric{
		labelled(declared.NvidiaGpuNvlinkIo.Name, device.NVLinkReceived, (*builder).RecordNvidiaGpuNvlinkIoDataPoint, receive),
		labelled(declared.NvidiaGpuNvlinkIo.Name, device.NVLinkTransmitted, (*builder).RecordNvidiaGpuNvlinkIoDataPoint, transmit),
		labelled(declared.NvidiaGpuNvlinkLinks.Name, device.NVLinkActiveLinks,
			(*builder).RecordNvidiaGpuNvlinkLinksDataPoint, metadata.AttributeNvidiaGpuNvlinkStateActive),
		labelled(declared.NvidiaGpuNvlinkLinks.Name, device.NVLinkInactiveLinks,
			(*builder).RecordNvidiaGpuNvlinkLinksDataPoint, metadata.AttributeNvidiaGpuNvlinkStateInactive),
	}, each(declared.NvidiaGpuNvlinkErrors.Name, device.NVLinkErrors,
		(*builder).RecordNvidiaGpuNvlinkErrorsDataPoint, metadata.MapAttributeErrorTypeNvlink)...)
}
