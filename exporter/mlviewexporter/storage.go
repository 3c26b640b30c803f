package mlviewexporter

import (
	"bytes"
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// stateKey is the key of the state in the storage extension.
const stateKey = "state"

// savedState keeps the part of the model that outlives a restart in a storage
// extension.
type savedState struct {
	client    storage.Client
	store     *model.Store
	telemetry *telemetry
	logger    *zap.Logger
	// last is what was saved or loaded last, so that nothing is written twice.
	last []byte
	// unread reports whether the state could not be read yet. It is not overwritten
	// until it can.
	unread bool
}

func openSavedState(ctx context.Context, host component.Host, extension, owner component.ID) (*savedState, error) {
	found, ok := host.GetExtensions()[extension]
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not among the extensions of the service`, extension)
	}
	kept, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf(`"storage" is %q, which is not a storage extension, such as file_storage`, extension)
	}
	client, err := kept.GetClient(ctx, component.KindExporter, owner, "")
	if err != nil {
		return nil, fmt.Errorf(`open "storage" %q: %w`, extension, err)
	}
	return &savedState{client: client}, nil
}

// load reads the state. Damaged data is dropped with a warning: the page then
// begins empty.
func (s *savedState) load(ctx context.Context) {
	data, err := s.client.Get(ctx, stateKey)
	if s.unread = err != nil; s.unread {
		s.fail(ctx, "read", "The state of the page could not be read from the storage. The page reads it again in a minute.", err)
		return
	}
	if len(data) == 0 {
		return
	}
	if err = s.store.Import(data); err == nil {
		s.last = bytes.Clone(data)
		return
	}
	s.fail(ctx, "decode", "The state of the page in the storage is damaged. It was dropped, and the page begins empty.", err)
	if err := s.client.Delete(ctx, stateKey); err != nil {
		s.fail(ctx, "write", "The damaged state of the page could not be removed from the storage.", err)
	}
}

// save writes the state if it has changed.
func (s *savedState) save(ctx context.Context) {
	if s.unread {
		if s.load(ctx); s.unread {
			return
		}
	}
	data, err := s.store.Export()
	if err != nil {
		s.fail(ctx, "encode", "The state of the page could not be saved.", err)
		return
	}
	if bytes.Equal(data, s.last) {
		return
	}
	if err := s.client.Set(ctx, stateKey, data); err != nil {
		s.fail(ctx, "write", "The state of the page could not be saved. The page saves it again in a minute.", err)
		return
	}
	s.last = data
}

// close saves the state a last time. The context of Shutdown may have ended
// already.
func (s *savedState) close() {
	s.save(context.Background())
	if err := s.client.Close(context.Background()); err != nil {
		s.fail(context.Background(), "write", "The storage of the page could not be closed.", err)
	}
}

func (s *savedState) fail(ctx context.Context, operation, message string, err error) {
	s.telemetry.storageError(ctx, operation)
	s.logger.Warn(message, zap.Error(err))
}
