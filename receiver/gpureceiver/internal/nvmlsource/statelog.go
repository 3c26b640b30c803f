package nvmlsource

import (
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// stateLog logs one line for each change of a state.
type stateLog struct {
	logger *zap.Logger
	// quiet logs a missing library or driver as information, for the source
	// auto, for which a host without GPUs is normal.
	quiet bool
	// library is the configured library, for the line about a missing one.
	library string
	state   device.DriverState
	result  status
}

// last returns the driver's last state, or otherwise if there is none.
func (l *stateLog) last(otherwise device.DriverState) device.DriverState {
	if l.state == "" {
		return otherwise
	}
	return l.state
}

// driver logs the driver's state if it has changed.
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
	write(advice[state], fields...)
}
