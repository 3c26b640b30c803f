package smoke

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	repository  = "github.com/otelcol-ml/otelcol-ml"
	corePath    = "go.opentelemetry.io/collector"
	contribPath = "github.com/open-telemetry/opentelemetry-collector-contrib"
	// localVersion is what every module of the repository calls the others.
	localVersion = "v0.0.0"
)

// component is one entry of the manifest.
type component struct {
	GoMod string `yaml:"gomod"`
	Path  string `yaml:"path"`
	// Import is a package of the module of another entry.
	Import string `yaml:"import"`
}

func (c component) module() string  { module, _, _ := strings.Cut(c.GoMod, " "); return module }
func (c component) version() string { _, version, _ := strings.Cut(c.GoMod, " "); return version }

// manifest is builder-config.yaml.
type manifest struct {
	Dist struct {
		Name    string `yaml:"name"`
		Module  string `yaml:"module"`
		Version string `yaml:"version"`
	} `yaml:"dist"`
	Receivers  []component `yaml:"receivers"`
	Processors []component `yaml:"processors"`
	Exporters  []component `yaml:"exporters"`
	Connectors []component `yaml:"connectors"`
	Extensions []component `yaml:"extensions"`
	Providers  []component `yaml:"providers"`
	Replaces   []string    `yaml:"replaces"`
}

func (m manifest) byKind() map[string][]component {
	return map[string][]component{
		"receiver":  m.Receivers,
		"processor": m.Processors,
		"exporter":  m.Exporters,
		"connector": m.Connectors,
		"extension": m.Extensions,
		"provider":  m.Providers,
	}
}

func readManifest(t *testing.T) manifest { return readManifestOf(t, "builder-config.yaml") }

func readManifestOf(t *testing.T, name string) manifest {
	t.Helper()
	text, err := os.ReadFile(harness.Path(name))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(text, &m))
	return m
}

func readGoMod(t *testing.T, folder string) *modfile.File {
	t.Helper()
	file := harness.Path(folder, "go.mod")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := modfile.Parse(file, text, nil)
	require.NoError(t, err)
	return parsed
}

// moduleFolders returns the folders of the repository that hold a go.mod,
// relative to its root.
func moduleFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	root := harness.Path()
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// bin/ has sources of others, as their licences ask.
		if entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || file == filepath.Join(root, "bin")) {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" {
			folder, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				return err
			}
			folders = append(folders, filepath.ToSlash(folder))
		}
		return nil
	}))
	return folders
}

// standsApart reports whether a module keeps its own versions, outside the
// workspace: what is generated, what tests from outside, and tools.
func standsApart(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	return first == "distribution" || first == "e2e" || strings.HasPrefix(folder, "internal/tools")
}

// isComponent reports whether a folder is that of a collector component.
func isComponent(folder string) bool {
	kind, _, _ := strings.Cut(folder, "/")
	switch kind {
	case "receiver", "processor", "exporter", "connector", "extension", "provider":
		return true
	}
	return false
}

// TestAgentManifest: the smaller collector has nothing that the whole one lacks, in the
// same versions.
func TestAgentManifest(t *testing.T) {
	whole, agent := readManifest(t), readManifestOf(t, "builder-agent.yaml")
	assert.Equal(t, whole.Dist.Version, agent.Dist.Version)
	all := whole.byKind()
	for kind, components := range agent.byKind() {
		assert.Subset(t, all[kind], components, kind)
	}
}

func TestManifestHasEveryComponentFolder(t *testing.T) {
	var listed, folders []string
	for kind, components := range readManifest(t).byKind() {
		for _, component := range components {
			if !strings.HasPrefix(component.module(), repository+"/") {
				assert.Empty(t, component.Path, "%s is not of this repository", component.GoMod)
				continue
			}
			if component.Import != "" {
				continue
			}
			folder := strings.TrimPrefix(component.module(), repository+"/")
			assert.Equal(t, kind, path.Dir(folder), "%s is listed as a %s", folder, kind)
			assert.Equal(t, "./"+folder, component.Path)
			assert.Equal(t, localVersion, component.version())
			listed = append(listed, folder)
		}
	}
	for _, folder := range moduleFolders(t) {
		if isComponent(folder) {
			folders = append(folders, folder)
			assert.FileExists(t, harness.Path(folder, "metadata.yaml"))
		}
	}
	assert.ElementsMatch(t, folders, listed, "component folders and the manifest's local components")
}

func TestWorkspaceHasEveryModule(t *testing.T) {
	file := harness.Path("go.work")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	work, err := modfile.ParseWork(file, text, nil)
	require.NoError(t, err)
	var used, folders []string
	for _, use := range work.Use {
		used = append(used, path.Clean(use.Path))
	}
	for _, folder := range moduleFolders(t) {
		if !standsApart(folder) {
			folders = append(folders, folder)
		}
		goMod := readGoMod(t, folder)
		assert.Equal(t, repository+"/"+folder, goMod.Module.Mod.Path)
	}
	assert.ElementsMatch(t, folders, used, "module folders and go.work")
}

// All modules that end up in the binary use one version of the collector. An
// exception stands in the decision record about versions, by name and version.
func TestCollectorVersionsAgree(t *testing.T) {
	record, err := os.ReadFile(harness.Path("docs", "adr", "0001-collector-version.md"))
	require.NoError(t, err)
	excused := func(module, version string) bool {
		return strings.Contains(string(record), path.Base(module)) &&
			strings.Contains(string(record), strings.TrimPrefix(version, "v"))
	}
	versions := manifestVersions(t)
	check := func(where, module, version string) {
		var expected string
		switch {
		case strings.HasPrefix(module, repository+"/"):
			expected = localVersion
		case strings.HasPrefix(module, contribPath+"/"):
			expected = versions.contrib
		case module == corePath || strings.HasPrefix(module, corePath+"/"):
			expected = versions.core
			if strings.HasPrefix(version, "v1.") {
				expected = versions.stable
			}
		default:
			return
		}
		if version != expected && !excused(module, version) {
			assert.Fail(t, "another version", "%s: %s is at %s, the others are at %s", where, module, version, expected)
		}
	}

	for _, components := range readManifest(t).byKind() {
		for _, component := range components {
			check("builder-config.yaml", component.module(), component.version())
		}
	}
	for _, folder := range moduleFolders(t) {
		if strings.HasPrefix(folder, "internal/tools") || strings.HasPrefix(folder, "e2e/servers") {
			continue
		}
		for _, require := range readGoMod(t, folder).Require {
			check(folder+"/go.mod", require.Mod.Path, require.Mod.Version)
		}
	}
}

// manifestVersions returns the version that most of the manifest's modules of
// each kind have.
func manifestVersions(t *testing.T) (versions struct{ core, stable, contrib string }) {
	t.Helper()
	core, stable, contrib := map[string]int{}, map[string]int{}, map[string]int{}
	for _, components := range readManifest(t).byKind() {
		for _, component := range components {
			switch {
			case strings.HasPrefix(component.module(), contribPath+"/"):
				contrib[component.version()]++
			case !strings.HasPrefix(component.module(), corePath+"/"):
			case strings.HasPrefix(component.version(), "v1."):
				stable[component.version()]++
			default:
				core[component.version()]++
			}
		}
	}
	for target, counts := range map[*string]map[string]int{
		&versions.core: core, &versions.stable: stable, &versions.contrib: contrib,
	} {
		require.NotEmpty(t, counts)
		for version, count := range counts {
			if count > counts[*target] {
				*target = version
			}
		}
	}
	return versions
}

func TestDistributionIsTheManifests(t *testing.T) {
	m := readManifest(t)
	goMod := readGoMod(t, "distribution")
	assert.Equal(t, m.Dist.Module, goMod.Module.Mod.Path)

	required := map[string]string{}
	for _, require := range goMod.Require {
		if !require.Indirect {
			required[require.Mod.Path] = require.Mod.Version
		}
	}
	replaced := map[string]string{}
	for _, replace := range goMod.Replace {
		replaced[replace.Old.Path] = replace.New.Path
	}
	components, err := os.ReadFile(harness.Path("distribution", "components.go"))
	require.NoError(t, err)
	main, err := os.ReadFile(harness.Path("distribution", "main.go"))
	require.NoError(t, err)

	for kind, listed := range m.byKind() {
		for _, component := range listed {
			assert.Equal(t, component.version(), required[component.module()], component.GoMod)
			if component.Path != "" {
				assert.Equal(t, harness.Path(component.Path), absolute(replaced[component.module()]), component.GoMod)
			}
			source := components
			if kind == "provider" {
				source = main
			}
			assert.Contains(t, string(source), `"`+cmp.Or(component.Import, component.module())+`"`, "make generate has not been run")
		}
	}
	assert.Contains(t, string(main), `"`+m.Dist.Version+`"`)
}

// absolute resolves a path of distribution/go.mod.
func absolute(replacement string) string {
	if filepath.IsAbs(replacement) {
		return "(an absolute path) " + replacement
	}
	return harness.Path("distribution", replacement)
}

// Every component that the binary says it has is in the manifest, and the
// other way round.
func TestBinaryHasTheManifestsComponents(t *testing.T) {
	code, output := harness.Run(t, harness.Command{
		Name: "otelcol-ml components",
		Path: harness.CollectorBinary(t),
		Args: []string{"components"},
	}, harness.StartTimeout)
	require.Zero(t, code, output)
	var built map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(output), &built))
	for _, kind := range []string{"receiver", "processor", "exporter", "connector", "extension", "provider"} {
		var listed, inBinary []string
		for _, component := range readManifest(t).byKind()[kind] {
			listed = append(listed, component.GoMod)
		}
		var entries []struct {
			Module string `yaml:"module"`
		}
		node := built[kind+"s"]
		require.NoError(t, node.Decode(&entries))
		for _, entry := range entries {
			inBinary = append(inBinary, entry.Module)
		}
		assert.ElementsMatch(t, listed, inBinary, kind+"s")
	}
}
