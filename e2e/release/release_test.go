package release

import (
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	dist    = flag.String("dist", "", "folder of the release")
	source  = flag.String("source", "", "clone with the release's commit and tags")
	version = flag.String("version", "", "version of the release, such as 0.1.0")
	archs   = flag.String("archs", "amd64,arm64", "processors that the release is for")
	key     = flag.String("key", "", "public key of the signature; empty if the release has none")
	images  = flag.Bool("images", true, "whether the release has images")
)

// limit is how long a program of the release may take.
const limit = 10 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	if *dist == "" || *source == "" || *version == "" {
		fmt.Fprintln(os.Stderr, "release: make release runs these tests, with -dist, -source and -version")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// output runs a program and returns what it writes.
func output(t *testing.T, dir, path string, arguments ...string) string {
	t.Helper()
	code, text := harness.Run(t, harness.Command{Name: filepath.Base(path), Path: path, Args: arguments, Dir: dir}, limit)
	require.Zero(t, code, text)
	return strings.TrimSpace(text)
}

// The checksums are those of all files, and no file is missing.
func TestFiles(t *testing.T) {
	wanted := []string{"RELEASE.md", "SHA256SUMS", "otelcol-ml-" + *version + ".tgz"}
	for arch := range strings.SplitSeq(*archs, ",") {
		rpm := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
		wanted = append(wanted,
			"otelcol-ml-"+*version+"-linux-"+arch+".spdx.json",
			"otelcol-ml-"+*version+"-linux-"+arch+".tar.gz",
			"otelcol-ml-agent-"+*version+"-linux-"+arch+".tar.gz",
			"otelcol-ml-"+packaged()+"."+rpm+".rpm",
			"otelcol-ml-agent-"+packaged()+"."+rpm+".rpm",
			"otelcol-ml_"+packaged()+"_"+arch+".deb",
			"otelcol-ml-agent_"+packaged()+"_"+arch+".deb")
		if *images {
			wanted = append(wanted, image("otelcol-ml", arch), image("otelcol-ml-agent", arch))
		}
	}
	if *key != "" {
		wanted = append(wanted, "SHA256SUMS.sig")
	}
	var found []string
	entries, err := os.ReadDir(*dist)
	require.NoError(t, err)
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	slices.Sort(wanted)
	assert.Equal(t, wanted, found)

	sums, err := os.ReadFile(filepath.Join(*dist, "SHA256SUMS"))
	require.NoError(t, err)
	summed := slices.DeleteFunc(slices.Clone(found), func(name string) bool { return !strings.HasPrefix(name, "SHA256SUMS") })
	for line := range strings.Lines(string(sums)) {
		_, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		summed = append(summed, name)
	}
	slices.Sort(summed)
	assert.Equal(t, found, summed)
	output(t, *dist, "sha256sum", "--check", "--quiet", "SHA256SUMS")
}

// The checksums are signed by the key, and others are not. The commands are those of
// docs/install.md.
func TestSignature(t *testing.T) {
	if *key == "" {
		t.Skip("the release is not signed: distribution/release.sh signs it with KEY")
	}
	public, err := os.ReadFile(*key)
	require.NoError(t, err)
	signers := filepath.Join(t.TempDir(), "signers")
	require.NoError(t, os.WriteFile(signers, append([]byte("otelcol-ml "), public...), 0o600))
	sums := filepath.Join(*dist, "SHA256SUMS")
	verify := fmt.Sprintf("ssh-keygen -Y verify -f '%s' -I otelcol-ml -n file -s '%s.sig' < ", signers, sums)
	output(t, *dist, "sh", "-c", verify+"'"+sums+"'")
	changed := filepath.Join(t.TempDir(), "SHA256SUMS")
	text, err := os.ReadFile(sums)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(changed, append(text, '\n'), 0o600))
	code, _ := harness.Run(t, harness.Command{Name: "sh", Path: "sh", Args: []string{"-c", verify + "'" + changed + "'"}}, limit)
	assert.NotZero(t, code)
}

// packaged is the version as packages have it: a release candidate sorts before its release.
func packaged() string { return strings.Replace(*version, "-", "~", 1) + "-1" }

func image(program, arch string) string {
	return program + "-" + *version + "-image-linux-" + arch + ".tar.gz"
}

// run runs a program for a processor with the C library below a folder, by qemu if it is
// another processor than this one, and returns what it writes. ok is false where qemu is missing.
func run(t *testing.T, arch, libraries, program string, arguments ...string) (text string, ok bool) {
	if arch == runtime.GOARCH {
		return output(t, "", program, arguments...), true
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Logf("%s is not run: there is no qemu-aarch64-static", program)
		return "", false
	}
	return output(t, "", qemu, append([]string{"-L", libraries, program}, arguments...)...), true
}

// The programs of the archives are for their processor, and those for this one say
// their version and take their configurations.
func TestArchives(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for arch := range strings.SplitSeq(*archs, ",") {
		for _, program := range []string{"otelcol-ml", "otelcol-ml-agent"} {
			t.Run(program+" "+arch, func(t *testing.T) {
				t.Parallel()
				name := program + "-" + *version + "-linux-" + arch
				dir := t.TempDir()
				output(t, dir, "tar", "-xzf", filepath.Join(*dist, name+".tar.gz"))
				root := filepath.Join(dir, name)
				for _, binary := range []string{program, "queuecheck"} {
					file, err := elf.Open(filepath.Join(root, binary))
					require.NoError(t, err)
					assert.Equal(t, machines[arch], file.Machine, binary)
					require.NoError(t, file.Close())
				}
				for _, text := range []string{"LICENSE", "CHANGELOG.md", "licenses/go/LICENSE", "prometheus/rules/alerts.yaml"} {
					assert.FileExists(t, filepath.Join(root, text))
				}
				if said, ok := run(t, arch, "/usr/aarch64-linux-gnu", filepath.Join(root, program), "--version"); ok {
					assert.Equal(t, program+" version "+*version, said)
					run(t, arch, "/usr/aarch64-linux-gnu", filepath.Join(root, program), "validate", "--config", filepath.Join(root, "config", "agent.yaml"))
				}
			})
		}
	}
}

// dpkg reads the Debian packages.
func TestPackages(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg-deb")
	require.NoError(t, err, "the tests read Debian packages")
	for arch := range strings.SplitSeq(*archs, ",") {
		for program, other := range map[string]string{"otelcol-ml": "otelcol-ml-agent", "otelcol-ml-agent": "otelcol-ml"} {
			name := filepath.Join(*dist, program+"_"+packaged()+"_"+arch+".deb")
			assert.Equal(t, packaged(), output(t, "", dpkg, "-f", name, "Version"))
			assert.Equal(t, arch, output(t, "", dpkg, "-f", name, "Architecture"))
			assert.Contains(t, output(t, "", dpkg, "-f", name, "Depends"), "libc6 (>= 2.")
			assert.Equal(t, other, output(t, "", dpkg, "-f", name, "Conflicts"))
			assert.Contains(t, output(t, "", dpkg, "-c", name), "./usr/bin/"+program+"\n")
		}
	}
}

// The bill of materials has the version and the Collector's modules, with licenses.
func TestBillOfMaterials(t *testing.T) {
	for arch := range strings.SplitSeq(*archs, ",") {
		text, err := os.ReadFile(filepath.Join(*dist, "otelcol-ml-"+*version+"-linux-"+arch+".spdx.json"))
		require.NoError(t, err)
		var bill struct {
			Packages []struct {
				Name     string `json:"name"`
				Version  string `json:"versionInfo"`
				Licenses string `json:"licenseConcluded"`
			} `json:"packages"`
		}
		require.NoError(t, json.Unmarshal(text, &bill))
		licensed, own := 0, ""
		for _, found := range bill.Packages {
			if found.Licenses != "NOASSERTION" {
				licensed++
			}
			if found.Name == "otelcol-ml" {
				own = found.Version
			}
		}
		assert.Equal(t, *version, own, arch)
		assert.Greater(t, licensed, 300, arch)
	}
}

// The chart has the version, and its pods have the image of the version.
func TestChart(t *testing.T) {
	chart := filepath.Join(*dist, "otelcol-ml-"+*version+".tgz")
	helm := harness.Binary(t, ".cache/bin/helm", ".cache", "bin", "helm")
	rendered := output(t, "", helm, "template", "release", chart, "--kube-version", "1.34.0", "--set", "gateway.enabled=true,image.repository=registry.example/otelcol-ml,backends.traces.endpoint=jaeger:4317")
	found := regexp.MustCompile(`image: "?([^"\s]+)`).FindAllStringSubmatch(rendered, -1)
	require.NotEmpty(t, found)
	for _, name := range found {
		assert.Regexp(t, `otelcol-ml:`+regexp.QuoteMeta(*version)+`$`, name[1])
	}
	assert.Contains(t, output(t, "", helm, "show", "chart", chart), "\nversion: "+*version)
}

// The images are those of the release's commit, and those for another processor run their
// program with their C library, in an emulator.
func TestImages(t *testing.T) {
	if !*images {
		t.Log("the release has no images, as was asked for")
		return
	}
	head := output(t, *source, "git", "rev-parse", "HEAD")
	for arch := range strings.SplitSeq(*archs, ",") {
		for _, program := range []string{"otelcol-ml", "otelcol-ml-agent"} {
			t.Run(program+" "+arch, func(t *testing.T) { testImage(t, program, arch, head) })
		}
	}
}

func testImage(t *testing.T, program, arch, head string) {
	dir := t.TempDir()
	output(t, dir, "tar", "-xzf", filepath.Join(*dist, image(program, arch)))
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Len(t, manifest, 1)
	assert.Regexp(t, program+":"+regexp.QuoteMeta(*version)+"( |$)", strings.Join(manifest[0].RepoTags, " "))
	text, err = os.ReadFile(filepath.Join(dir, filepath.Clean(manifest[0].Config)))
	require.NoError(t, err)
	var config struct {
		Architecture string                             `json:"architecture"`
		Config       struct{ Labels map[string]string } `json:"config"`
	}
	require.NoError(t, json.Unmarshal(text, &config))
	assert.Equal(t, arch, config.Architecture)
	assert.Equal(t, *version, config.Config.Labels["org.opencontainers.image.version"])
	assert.Equal(t, head, config.Config.Labels["org.opencontainers.image.revision"])
	root := t.TempDir()
	for _, layer := range manifest[0].Layers {
		output(t, root, "tar", "--keep-directory-symlink", "-xf", filepath.Join(dir, layer))
	}
	if said, ok := run(t, arch, root, filepath.Join(root, "otelcol-ml"), "--version"); ok {
		assert.Equal(t, program+" version "+*version, said)
	}
}

// The notes are the changelog's section of the version and what to do.
func TestNotes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(*dist, "RELEASE.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "### Added\n")
	assert.Contains(t, string(text), "## To upgrade\n")
	changelog, err := os.ReadFile(filepath.Join(*source, "CHANGELOG.md"))
	require.NoError(t, err)
	assert.NotContains(t, string(changelog), "## Unreleased")
	heading := regexp.MustCompile(`(?m)^## .*`).FindString(string(changelog))
	assert.Regexp(t, `^## `+regexp.QuoteMeta(*version)+` - \d{4}-\d{2}-\d{2}$`, heading)
}

// The commit names its version only, and each module has a tag.
func TestCommit(t *testing.T) {
	assert.Empty(t, output(t, *source, "git", "status", "--porcelain"))
	workspace, err := os.ReadFile(filepath.Join(*source, "go.work"))
	require.NoError(t, err)
	wanted := []string{"v" + *version}
	for line := range strings.Lines(string(workspace)) {
		if module, ok := strings.CutPrefix(strings.TrimSpace(line), "./"); ok && !strings.HasPrefix(module, "cmd/") {
			wanted = append(wanted, module+"/v"+*version)
		}
	}
	slices.Sort(wanted)
	assert.Equal(t, wanted, slices.Sorted(strings.SplitSeq(output(t, *source, "git", "tag", "--points-at", "HEAD"), "\n")))
	code, found := harness.Run(t, harness.Command{
		Name: "git", Path: "git", Dir: *source,
		Args: []string{"grep", "-lE", `0\.1\.0-dev|otelcol-ml/[a-z/]+ v0\.0\.0`, "--", ":!*testdata*", ":!CHANGELOG.md", ":!*_test.go"},
	}, limit)
	assert.Equal(t, 1, code, found)
}
