package price

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// CheckPrices is the time between two looks at the file of prices.
const CheckPrices = time.Minute

// Watched has the prices of the file of the configuration, if it names one.
type Watched struct {
	path   string
	file   *File
	logger *zap.Logger
	// failure is why the file could not be read, "" if it could.
	failure atomic.Pointer[string]
}

// NewWatched returns the prices of a file, none before Start.
func NewWatched(path string, logger *zap.Logger) *Watched {
	return &Watched{path: path, file: NewFile(path), logger: logger}
}

// Table returns the prices, or nil if there are none.
func (p *Watched) Table() *Table { return p.file.Table() }

// Start reads the file, and again whenever it changes until stop is closed. ended
// is closed afterwards.
func (p *Watched) Start(stop <-chan struct{}) (ended <-chan struct{}) {
	done := make(chan struct{})
	if p.path == "" {
		close(done)
		return done
	}
	_, err := p.file.Read()
	p.report(err)
	go func() {
		defer close(done)
		ticker := time.NewTicker(CheckPrices)
		defer ticker.Stop()
		p.file.Watch(stop, ticker.C, p.report)
	}()
	return done
}

// report logs the result of a reading, once if it repeats.
func (p *Watched) report(err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	switch last := p.failure.Swap(&failure); {
	case err == nil:
		p.logger.Info("Read the file of prices.", zap.String("file", p.path), zap.String("date", p.Table().Date()))
	case last == nil || *last != failure:
		p.logger.Error("The file of prices could not be read. Earlier prices stay, and it is tried again each minute.", zap.Error(err))
	}
}

// Notices returns what the file does not tell.
func (p *Watched) Notices(id string) []shared.Notice {
	failure := p.failure.Load()
	if failure == nil || *failure == "" {
		return nil
	}
	return []shared.Notice{{
		Key: "prices", Kind: "disk", What: "Prices of models",
		Why: fmt.Sprintf("The file could not be read: %s.", *failure), Fix: id + ": {prices: {file: <file>}}",
	}}
}
