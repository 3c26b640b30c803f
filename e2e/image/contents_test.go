package image

import (
	"archive/tar"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// contents is the image's file system: the headers of its files by their paths
// without a slash before them, and what is in those that a test reads.
type contents struct {
	headers map[string]*tar.Header
	read    map[string]string
}

const billOfMaterials = "usr/share/sbom/otelcol-ml.spdx.json"

func readContents(t *testing.T, image string) contents {
	t.Helper()
	archive, err := os.Open(engine.Export(t, image))
	require.NoError(t, err)
	defer func() { assert.NoError(t, archive.Close()) }()
	found := contents{headers: map[string]*tar.Header{}, read: map[string]string{}}
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		name := path.Clean(header.Name)
		found.headers[name] = header
		switch name {
		case "otelcol-ml", billOfMaterials, "etc/otelcol-ml/config.yaml", "etc/passwd":
			file := filepath.Join(t.TempDir(), path.Base(name))
			content, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, content, 0o600))
			found.read[name] = file
		}
	}
}

func TestContents(t *testing.T) {
	project := harness.LoadCompose(t, harness.ComposeOptions{Files: []string{harness.StackFile()}})
	image := project.Services["otelcol-ml"].Image
	inspected := engine.InspectImage(t, image)
	found := readContents(t, image)

	t.Run("how it is run", func(t *testing.T) {
		config := inspected.Config
		assert.Less(t, inspected.Size, int64(200_000_000))
		assert.Equal(t, "10001:10001", config.User)
		assert.Equal(t, []string{"/otelcol-ml"}, config.Entrypoint)
		assert.Equal(t, []string{"--config", "/etc/otelcol-ml/config.yaml"}, config.Cmd)
		assert.ElementsMatch(t, []string{"4317/tcp", "4318/tcp", "8888/tcp", "8889/tcp", "8890/tcp", "13133/tcp"}, slices.Collect(maps.Keys(config.ExposedPorts)))
		assert.Regexp(t, `^[0-9a-f]{40}(-modified)?$`, config.Labels["org.opencontainers.image.revision"])
		assert.Regexp(t, `^[0-9-]{10}T[0-9:]{8}Z$`, config.Labels["org.opencontainers.image.created"])
		assert.Contains(t, image, ":"+config.Labels["org.opencontainers.image.version"])
	})

	t.Run("files", func(t *testing.T) {
		shipped, err := os.ReadFile(harness.Path("distribution", "config", "agent.yaml"))
		require.NoError(t, err)
		config, err := os.ReadFile(found.read["etc/otelcol-ml/config.yaml"])
		require.NoError(t, err)
		assert.Equal(t, string(shipped), string(config))
		for _, name := range []string{"agent-gateway.yaml", "gateway.yaml", "to-fleet.yaml", "fleet.yaml"} {
			assert.Contains(t, found.headers, "etc/otelcol-ml/"+name, "docker run … --config /etc/otelcol-ml/"+name)
		}
		for link, target := range map[string]string{
			"etc/otelcol": "otelcol-ml", "etc/otelcol-contrib": "otelcol-ml", "otelcol": "otelcol-ml", "otelcol-contrib": "otelcol-ml",
		} {
			if assert.Contains(t, found.headers, link) {
				assert.Equal(t, target, found.headers[link].Linkname, link)
			}
		}
		for _, folder := range []string{"var/lib/otelcol-ml/queue", "var/lib/otelcol-ml/reproductions", "var/lib/otelcol-ml/state"} {
			if assert.Contains(t, found.headers, folder) {
				header := found.headers[folder]
				assert.Equal(t, [3]int{10001, 10001, 0o700}, [3]int{header.Uid, header.Gid, int(header.FileInfo().Mode().Perm())}, folder)
			}
		}
		for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin", "etc/debian_version", "usr/share/doc/libc6/copyright"} {
			assert.Contains(t, found.headers, name)
		}
	})

	t.Run("nothing to break out with", func(t *testing.T) {
		var programs []string
		for name, header := range found.headers {
			assert.Zero(t, header.Mode&0o6000, "%s is setuid or setgid", name)
			if header.Uid == 0 && header.Typeflag == tar.TypeReg {
				assert.Zero(t, header.Mode&0o022, "others may write %s", name)
			}
			if header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0 && !strings.HasPrefix(name, "usr/lib/") && !strings.HasPrefix(name, "licenses/") {
				programs = append(programs, name)
			}
		}
		assert.ElementsMatch(t, []string{"otelcol-ml", "healthcheck", "queuecheck"}, programs, "no shell, no package manager")
	})

	info, err := buildinfo.ReadFile(found.read["otelcol-ml"])
	require.NoError(t, err)
	modules := dependencies(info)
	require.Greater(t, len(modules), 100)
	t.Run("licences of all modules", func(t *testing.T) { testLicenses(t, found, modules) })
	t.Run("bill of materials", func(t *testing.T) { testBillOfMaterials(t, found, modules) })
}

// dependencies returns the modules of others that a program is made of, and
// their versions, after replacement.
func dependencies(info *buildinfo.BuildInfo) map[string]string {
	modules := map[string]string{}
	for _, module := range info.Deps {
		actual := module
		if module.Replace != nil {
			actual = module.Replace
		}
		if !own(actual) && !own(module) {
			modules[actual.Path] = actual.Version
		}
	}
	return modules
}

func own(module *debug.Module) bool {
	return strings.HasPrefix(module.Path, "github.com/otelcol-ml/")
}

// testLicenses expects a licence for each module, in its folder or, where only
// some of its packages are compiled in, below it.
func testLicenses(t *testing.T, found contents, modules map[string]string) {
	for module := range modules {
		licensed := slices.ContainsFunc(slices.Collect(maps.Keys(found.headers)), func(name string) bool {
			base := strings.ToUpper(path.Base(name))
			return strings.HasPrefix(name, "licenses/"+module+"/") &&
				(strings.HasPrefix(base, "LICEN") || strings.HasPrefix(base, "COPYING"))
		})
		assert.True(t, licensed, "no licence of %s", module)
	}
	for _, name := range []string{"licenses/LICENSE", "licenses/go/LICENSE"} {
		assert.Contains(t, found.headers, name)
	}
}

// testBillOfMaterials expects each module with its version and, of all but a
// few, its licence, and the packages of Debian.
func testBillOfMaterials(t *testing.T, found contents, modules map[string]string) {
	text, err := os.ReadFile(found.read[billOfMaterials])
	require.NoError(t, err)
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name      string `json:"name"`
			Version   string `json:"versionInfo"`
			Concluded string `json:"licenseConcluded"`
			Declared  string `json:"licenseDeclared"`
		} `json:"packages"`
	}
	require.NoError(t, json.Unmarshal(text, &document))
	assert.Equal(t, "SPDX-2.3", document.SPDXVersion)
	versions, licences := map[string]string{}, map[string]string{}
	for _, entry := range document.Packages {
		versions[entry.Name] = entry.Version
		licences[entry.Name] = strings.ReplaceAll(entry.Concluded+entry.Declared, "NOASSERTION", "")
	}
	unknown := 0
	for module, version := range modules {
		assert.Equal(t, version, versions[module], module)
		if licences[module] == "" {
			unknown++
		}
	}
	assert.Less(t, unknown, len(modules)/20, "modules without a licence in the bill of materials")
	for _, name := range []string{"libc6", "ca-certificates", "tzdata", "base-files", "stdlib"} {
		assert.NotEmpty(t, versions[name], name)
	}
}
