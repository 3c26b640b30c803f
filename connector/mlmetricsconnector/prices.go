package mlmetricsconnector

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// checkPrices is the time between two looks at the file of prices.
const checkPrices = time.Minute

// prices are those of the file of the configuration, if it names one.
type prices struct {
	path   string
	file   *price.File
	logger *zap.Logger
	// failure is why the file could not be read, "" if it could.
	failure atomic.Pointer[string]
}

func newPrices(path string, logger *zap.Logger) *prices {
	return &prices{path: path, file: price.NewFile(path), logger: logger}
}

// table returns the prices, or nil if there are none.
func (p *prices) table() *price.Table { return p.file.Table() }

// start reads the file, and again whenever it changes until stop is closed. ended
// is closed afterwards.
func (p *prices) start(stop <-chan struct{}) (ended <-chan struct{}) {
	done := make(chan struct{})
	if p.path == "" {
		close(done)
		return done
	}
	_, err := p.file.Read()
	p.report(err)
	go func() {
		defer close(done)
		ticker := time.NewTicker(checkPrices)
		defer ticker.Stop()
		p.file.Watch(stop, ticker.C, p.report)
	}()
	return done
}

// report logs the result of a reading, once if it repeats.
func (p *prices) report(err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	switch last := p.failure.Swap(&failure); {
	case err == nil:
		p.logger.Info("Read the file of prices.", zap.String("file", p.path), zap.String("date", p.table().Date()))
	case last == nil || *last != failure:
		p.logger.Error("The file of prices could not be read. Earlier prices stay, and it is tried again each minute.", zap.Error(err))
	}
}

// notices returns what the file does not tell.
func (p *prices) notices(id string) []shared.Notice {
	failure := p.failure.Load()
	if failure == nil || *failure == "" {
		return nil
	}
	return []shared.Notice{{
		Key: "prices", Kind: "disk", What: "Prices of models",
		Why: fmt.Sprintf("The file could not be read: %s.", *failure), Fix: id + ": {prices: {file: <file>}}",
	}}
}
