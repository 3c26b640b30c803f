package nvmlsource

import (
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// stateLog writes one line for each change of a state, and none while it
// stays.
type stateLog struct {
	logger *zap.Logger
	// quiet makes a missing library or driver an information, for the source
	// auto, where a host without GPUs is a normal one.
	quiet bool
	// library is what was asked for, for the line that says it is missing.
	library string
	state   device.DriverState
	result  status
}

// last returns the driver's last state, or the given one where there is none.
func (l *stateLog) last(otherwise device.DriverState) device.DriverState {
	if l.state == "" {
		return otherwise
	}
	return l.state
}

// driver notes the driver's state.
func (l *stateLog) driver(state device.DriverState, result status) {
	l.result = result
	if state == l.state {
		return
	}
	l.state = state
	if state == device.DriverOK {
		l.logger.Info("The NVIDIA driver answers", zap.String("state", string(state)))
		return
	}
	write := l.logger.Warn
	if l.quiet && (state == device.DriverLibraryMissing || state == device.DriverMissing) {
		write = l.logger.Info
	}
	fields := []zap.Field{zap.String("state", string(state)), zap.String("nvml.return", string(result))}
	if state == device.DriverLibraryMissing {
		fields = append(fields, zap.String("library_path", l.library))
	}
	write(advice(state), fields...)
}

// gpu notes what became of a GPU's calls: whether it answers, and if not, the
// first failure.
func (l *stateLog) gpu(known *knownGPU, failures []failure, answered bool) {
	var state status
	for _, f := range failures {
		if !answered || f.status == statusTimeout || f.status == statusGPUIsLost {
			state = f.status
			break
		}
	}
	if state == known.state {
		return
	}
	known.state = state
	fields := []zap.Field{zap.String("hw.id", known.identity.ID), zap.Int("nvidia.gpu.index", known.identity.Index)}
	if state == "" {
		l.logger.Info("The GPU answers again", fields...)
		return
	}
	l.logger.Warn("The GPU does not answer; the other GPUs are read on", append(fields, zap.String("nvml.return", string(state)))...)
}
