package shared_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

type object struct {
	starts, stops int
	startErr      error
}

func (o *object) Start(context.Context, component.Host) error { o.starts++; return o.startErr }
func (o *object) Shutdown(context.Context) error              { o.stops++; return nil }

var (
	one = component.MustNewIDWithName("ml_enrich", "one")
	two = component.MustNewIDWithName("ml_enrich", "two")
)

// use returns a started use of an id, and of the object that create makes.
func use(t *testing.T, r *shared.Registry[*object], id component.ID, create func() (*object, error)) *shared.Use[*object] {
	t.Helper()
	of := r.Use(id, create)
	require.NoError(t, of.Start(t.Context(), componenttest.NewNopHost()))
	return &of
}

func TestInstancesOfOneIDShareAnObject(t *testing.T) {
	var r shared.Registry[*object]
	create := func() (*object, error) { return &object{}, nil }
	first, second, other := use(t, &r, one, create), use(t, &r, one, create), use(t, &r, two, create)

	assert.Same(t, first.Shared, second.Shared)
	assert.NotSame(t, first.Shared, other.Shared)
	assert.Equal(t, 1, first.Shared.starts)

	require.NoError(t, first.Shutdown(t.Context()))
	require.NoError(t, first.Shutdown(t.Context()), "a second shutdown by the same user does nothing")
	assert.Zero(t, first.Shared.stops)
	require.NoError(t, second.Shutdown(t.Context()))
	assert.Equal(t, 1, first.Shared.stops)
	assert.Zero(t, other.Shared.stops)
	require.NoError(t, other.Shutdown(t.Context()))

	again := use(t, &r, one, create)
	assert.NotSame(t, first.Shared, again.Shared, "after the last user's shutdown the next user begins anew")
	require.NoError(t, again.Shutdown(t.Context()))
}

func TestFailedStartKeepsNothing(t *testing.T) {
	var r shared.Registry[*object]
	broken := &object{startErr: errors.New("no such library")}
	of := r.Use(one, func() (*object, error) { return broken, nil })
	require.ErrorContains(t, of.Start(t.Context(), componenttest.NewNopHost()), "no such library")
	assert.Equal(t, 1, broken.stops, "what had begun is ended")
	require.NoError(t, of.Shutdown(t.Context()))

	of = r.Use(one, func() (*object, error) { return nil, errors.New("bad key") })
	require.ErrorContains(t, of.Start(t.Context(), componenttest.NewNopHost()), `"ml_enrich/one"`)

	require.NoError(t, use(t, &r, one, func() (*object, error) { return &object{}, nil }).Shutdown(t.Context()))
}

func TestManyUsersStartAndStopOnce(t *testing.T) {
	var r shared.Registry[*object]
	keep := use(t, &r, one, func() (*object, error) { return &object{}, nil })
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			of := r.Use(one, func() (*object, error) { return nil, errors.New("created twice") })
			if assert.NoError(t, of.Start(context.Background(), componenttest.NewNopHost())) {
				assert.Equal(t, 1, of.Shared.starts)
				assert.NoError(t, of.Shutdown(context.Background()))
			}
		})
	}
	wg.Wait()
	require.NoError(t, keep.Shutdown(t.Context()))
}

// The uses of an id share an object from Start to Shutdown; one that was not started has none.
func TestUse(t *testing.T) {
	var r shared.Registry[*object]
	made := 0
	create := func() (*object, error) {
		made++
		return &object{}, nil
	}
	first, second, idle := r.Use(one, create), r.Use(one, create), r.Use(one, create)
	for _, use := range []*shared.Use[*object]{&first, &second} {
		require.NoError(t, use.Start(t.Context(), componenttest.NewNopHost()))
	}
	assert.Same(t, first.Shared, second.Shared)
	assert.Equal(t, 1, made)
	require.NoError(t, first.Shutdown(t.Context()))
	require.NoError(t, idle.Shutdown(t.Context()))
	assert.Zero(t, second.Shared.stops)
	require.NoError(t, second.Shutdown(t.Context()))
	assert.Equal(t, 1, second.Shared.stops)
}
