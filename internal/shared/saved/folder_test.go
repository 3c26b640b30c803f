package saved_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// kept is a text that outlives restarts. "bad" cannot be imported.
type kept struct{ text string }

func (k *kept) Export() ([]byte, error) { return []byte(k.text), nil }

func (k *kept) Import(data []byte) error {
	if string(data) == "bad" {
		return errors.New("damaged")
	}
	k.text = string(data)
	return nil
}

// failures are what a component is told.
type failures []string

func (f *failures) add(_ context.Context, operation string, _ error, again bool) {
	if again {
		operation += " again"
	}
	*f = append(*f, operation)
}

func open(t *testing.T, folder string, id component.ID, k *kept, f *failures) *saved.State {
	t.Helper()
	state, err := saved.Place{Kind: component.KindExporter, Owner: id, Directory: folder}.Load(t.Context(), componenttest.NewNopHost(), "", k, f.add)
	require.NoError(t, err)
	return state
}

func TestAFolderKeepsTheStateOfEach(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "state")
	ids := []component.ID{component.MustNewID("ml_view"), component.MustNewIDWithName("ml_view", "a/b"), component.MustNewIDWithName("ml_view", "../c")}
	var failed failures
	for _, id := range ids {
		s := open(t, folder, id, &kept{text: id.String()}, &failed)
		s.Close()
		require.NoError(t, s.Err())
	}
	for _, id := range ids {
		k := new(kept)
		open(t, folder, id, k, &failed)
		assert.Equal(t, id.String(), k.text)
	}
	assert.Empty(t, failed)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, len(ids))
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}
}

// What cannot be read is moved away, once.
func TestAFolderWithADamagedFile(t *testing.T) {
	folder, id := t.TempDir(), component.MustNewID("ml_view")
	require.NoError(t, os.Chmod(folder, 0o700))
	var failed failures
	open(t, folder, id, &kept{text: "bad"}, &failed).Close()
	k := &kept{text: "new"}
	s := open(t, folder, id, k, &failed)
	assert.Equal(t, failures{saved.Decode}, failed)
	assert.Equal(t, "new", k.text)
	s.Close()
	require.NoError(t, s.Err())
	backup, err := os.ReadFile(filepath.Join(folder, "exporter_ml_view.state.backup"))
	require.NoError(t, err)
	assert.Equal(t, "bad", string(backup))
}

// A folder that cannot be used is no reason not to start, and it is said once. When it can
// be used, it is.
func TestAFolderThatCannotBeUsed(t *testing.T) {
	id := component.MustNewID("ml_view")
	for name, spoil := range map[string]func(t *testing.T, folder string) (repair func()){
		"below a file": func(t *testing.T, folder string) func() {
			parent := filepath.Dir(folder)
			require.NoError(t, os.WriteFile(parent, nil, 0o600))
			return func() { require.NoError(t, os.Remove(parent)) }
		},
		"a file": func(t *testing.T, folder string) func() {
			require.NoError(t, os.Mkdir(filepath.Dir(folder), 0o700))
			require.NoError(t, os.WriteFile(folder, nil, 0o600))
			return func() { require.NoError(t, os.Remove(folder)) }
		},
		"a link": func(t *testing.T, folder string) func() {
			require.NoError(t, os.Mkdir(filepath.Dir(folder), 0o700))
			require.NoError(t, os.Symlink(t.TempDir(), folder))
			return func() { require.NoError(t, os.Remove(folder)) }
		},
		"others may write": func(t *testing.T, folder string) func() {
			require.NoError(t, os.MkdirAll(folder, 0o700))
			require.NoError(t, os.Chmod(folder, 0o777))                   // #nosec G302 -- for the test
			return func() { require.NoError(t, os.Chmod(folder, 0o700)) } // #nosec G302 -- a folder
		},
		"a folder in place of the file": func(t *testing.T, folder string) func() {
			file := filepath.Join(folder, "exporter_ml_view.state")
			require.NoError(t, os.MkdirAll(file, 0o700))
			return func() { require.NoError(t, os.Remove(file)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "parent", "state")
			repair := spoil(t, folder)
			var failed failures
			s := open(t, folder, id, &kept{text: "mine"}, &failed)
			require.Error(t, s.Err())
			require.NotEmpty(t, failed)
			told := len(failed)
			s.Save(t.Context())
			s.Save(t.Context())
			require.Error(t, s.Err())
			for _, operation := range failed[told:] {
				assert.Contains(t, operation, " again", "it is known")
			}
			repair()
			s.Save(t.Context())
			require.NoError(t, s.Err())
			k := new(kept)
			require.NoError(t, open(t, folder, id, k, &failed).Err())
			assert.Equal(t, "mine", k.text)
		})
	}
}

// A file may be longer than its size says, as one that grows meanwhile.
func TestNoMoreOfAFileIsReadThanItsLimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files of /proc have no size")
	}
	root, err := os.OpenRoot("/proc/self")
	require.NoError(t, err)
	defer func() { assert.NoError(t, root.Close()) }()
	_, err = saved.ReadFile(root, "status", 16)
	require.ErrorContains(t, err, "larger than 16 bytes")
}
