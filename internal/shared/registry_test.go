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

func TestInstancesOfOneIDShareAnObject(t *testing.T) {
	var r shared.Registry[*object]
	create := func() (*object, error) { return &object{}, nil }
	first, releaseFirst, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, create)
	require.NoError(t, err)
	second, releaseSecond, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, create)
	require.NoError(t, err)
	other, releaseOther, err := r.Acquire(t.Context(), componenttest.NewNopHost(), two, create)
	require.NoError(t, err)

	assert.Same(t, first, second)
	assert.NotSame(t, first, other)
	assert.Equal(t, 1, first.starts)

	require.NoError(t, releaseFirst(t.Context()))
	require.NoError(t, releaseFirst(t.Context()), "a second release by the same user does nothing")
	assert.Zero(t, first.stops)
	require.NoError(t, releaseSecond(t.Context()))
	assert.Equal(t, 1, first.stops)
	assert.Zero(t, other.stops)
	require.NoError(t, releaseOther(t.Context()))

	again, releaseAgain, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, create)
	require.NoError(t, err)
	assert.NotSame(t, first, again, "after the last release the next user begins anew")
	require.NoError(t, releaseAgain(t.Context()))
}

func TestFailedStartKeepsNothing(t *testing.T) {
	var r shared.Registry[*object]
	broken := &object{startErr: errors.New("no such library")}
	_, _, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, func() (*object, error) { return broken, nil })
	require.ErrorContains(t, err, "no such library")
	assert.Equal(t, 1, broken.stops, "what had begun is ended")

	_, _, err = r.Acquire(t.Context(), componenttest.NewNopHost(), one, func() (*object, error) { return nil, errors.New("bad key") })
	require.ErrorContains(t, err, `"ml_enrich/one"`)

	_, release, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, func() (*object, error) { return &object{}, nil })
	require.NoError(t, err)
	require.NoError(t, release(t.Context()))
}

func TestManyUsersStartAndStopOnce(t *testing.T) {
	var r shared.Registry[*object]
	_, keep, err := r.Acquire(t.Context(), componenttest.NewNopHost(), one, func() (*object, error) { return &object{}, nil })
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			got, release, err := r.Acquire(context.Background(), componenttest.NewNopHost(), one, func() (*object, error) {
				return nil, errors.New("created twice")
			})
			if assert.NoError(t, err) {
				assert.Equal(t, 1, got.starts)
				assert.NoError(t, release(context.Background()))
			}
		})
	}
	wg.Wait()
	require.NoError(t, keep(t.Context()))
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
