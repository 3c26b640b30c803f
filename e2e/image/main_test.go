package image

import (
	"os"
	"strings"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// engine runs the containers, and images has the image to run for each that the
// compose file names and that could not be had.
var (
	engine *harness.Engine
	images = map[string]string{}
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, func(suite *harness.Suite) {
		text, err := os.ReadFile(harness.Path(".cache", "image", "servers"))
		if err != nil {
			suite.Fatalf("the servers' images are missing; make them with: make e2e-image (%v)", err)
		}
		for line := range strings.Lines(string(text)) {
			named, image, _ := strings.Cut(strings.TrimSpace(line), " ")
			images[named] = image
			if strings.HasPrefix(image, "localhost/") {
				suite.Logf("%s stands in for %s, which could not be pulled", image, named)
			}
		}
		engine = harness.FindEngine(suite)
		project := harness.LoadCompose(suite, harness.ComposeOptions{Files: []string{harness.StackFile()}})
		engine.Adapt(suite, project.Services["otelcol-ml"].Image, "/otelcol-ml", "--version")
	}))
}
