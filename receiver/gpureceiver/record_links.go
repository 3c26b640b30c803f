package gpureceiver

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	receive  = metadata.AttributeNetworkIoDirectionReceive
	transmit = metadata.AttributeNetworkIoDirectionTransmit
)

func (p *points) recordPCIe(link *device.PCIe) {
	for _, direction := range []struct {
		name        metadata.AttributeNetworkIoDirection
		bytes, rate device.Number
	}{
		{receive, link.Received, link.ReceiveRate},
		{transmit, link.Transmitted, link.TransmitRate},
	} {
		if direction.bytes.Known {
			p.RecordHwGpuIoDataPoint(p.now, int64(direction.bytes.Value), p.id, p.host, p.index, direction.name, p.labels...)
		}
		if direction.rate.Known {
			p.RecordNvidiaGpuPcieThroughputDataPoint(p.now, direction.rate.Value, p.id, p.host, p.index, direction.name, p.labels...)
		}
	}
	if link.Replays.Known {
		p.RecordNvidiaGpuPcieReplaysDataPoint(p.now, int64(link.Replays.Value), p.id, p.host, p.index, p.labels...)
	}
	for _, bound := range []struct {
		name              metadata.AttributeNvidiaGpuPcieLinkBound
		generation, width device.Number
	}{
		{metadata.AttributeNvidiaGpuPcieLinkBoundCurrent, link.Generation, link.Width},
		{metadata.AttributeNvidiaGpuPcieLinkBoundMax, link.MaxGeneration, link.MaxWidth},
	} {
		if bound.generation.Known {
			p.RecordNvidiaGpuPcieLinkGenerationDataPoint(p.now, int64(bound.generation.Value), p.id, p.host, p.index, bound.name, p.labels...)
		}
		if bound.width.Known {
			p.RecordNvidiaGpuPcieLinkWidthDataPoint(p.now, int64(bound.width.Value), p.id, p.host, p.index, bound.name, p.labels...)
		}
	}
}

func (p *points) recordNVLink(link *device.NVLink) {
	if link.Received.Known {
		p.RecordNvidiaGpuNvlinkIoDataPoint(p.now, int64(link.Received.Value), p.id, p.host, p.index, receive, p.labels...)
	}
	if link.Transmitted.Known {
		p.RecordNvidiaGpuNvlinkIoDataPoint(p.now, int64(link.Transmitted.Value), p.id, p.host, p.index, transmit, p.labels...)
	}
	for _, name := range device.NVLinkErrorTypes {
		if value, known := link.Errors[name]; known {
			p.RecordNvidiaGpuNvlinkErrorsDataPoint(p.now, int64(value), p.id, p.host, p.index,
				metadata.MapAttributeErrorTypeNvlink[name], p.labels...)
		}
	}
	if link.ActiveLinks.Known {
		p.RecordNvidiaGpuNvlinkLinksDataPoint(p.now, int64(link.ActiveLinks.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuNvlinkStateActive, p.labels...)
	}
	if link.InactiveLinks.Known {
		p.RecordNvidiaGpuNvlinkLinksDataPoint(p.now, int64(link.InactiveLinks.Value), p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuNvlinkStateInactive, p.labels...)
	}
}
