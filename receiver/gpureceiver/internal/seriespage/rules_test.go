package seriespage

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

const rulesFile = "../../../../docker/prometheus/rules/dcgm.yaml"

type rule struct {
	Record string            `yaml:"record"`
	Expr   string            `yaml:"expr"`
	Labels map[string]string `yaml:"labels"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// A name that the receiver does not emit would make a rule that never has a
// value, and that no unit test with made-up series finds.
func TestRulesUseNamesThatAreEmitted(t *testing.T) {
	emitted := map[string]bool{}
	for _, name := range common {
		emitted[strings.ReplaceAll(name, ".", "_")] = true
	}
	for _, m := range declared(t) {
		emitted[m.prometheus] = true
		for _, label := range m.labels {
			emitted[label] = true
		}
	}
	all := rules(t)
	for _, r := range all {
		emitted[r.Record] = true
	}
	name := regexp.MustCompile(`\b(?:hw|nvidia|k8s)_[a-z0-9_:]+`)
	for _, r := range all {
		for _, used := range name.FindAllString(r.Expr, -1) {
			assert.True(t, emitted[used], "%s reads %s", r.Record, used)
		}
	}
}

// A label's values are as much of a contract as its name.
func TestRulesUseValuesThatAreEmitted(t *testing.T) {
	text, err := os.ReadFile(declarations)
	require.NoError(t, err)
	var metadata struct {
		Attributes map[string]struct {
			NameOverride string   `yaml:"name_override"`
			Enum         []string `yaml:"enum"`
		} `yaml:"attributes"`
	}
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	values := map[string][]string{}
	for name, attribute := range metadata.Attributes {
		if attribute.NameOverride != "" {
			name = attribute.NameOverride
		}
		label := strings.ReplaceAll(name, ".", "_")
		values[label] = append(values[label], attribute.Enum...)
	}
	matcher := regexp.MustCompile(`([a-z0-9_]+)="([^"]+)"`)
	found := 0
	for _, r := range rules(t) {
		for _, match := range matcher.FindAllStringSubmatch(r.Expr, -1) {
			assert.Contains(t, values[match[1]], match[2], "%s reads %s", r.Record, match[0])
			found++
		}
	}
	assert.Positive(t, found)
}

// Each code that every GPU has a series of can be shown as the last one.
func TestRulesKnowTheCommonXIDs(t *testing.T) {
	known := map[string]string{}
	for _, r := range rules(t) {
		if r.Record == "nvidia_gpu:xid_code" {
			known[r.Labels["nvidia_gpu_xid_code"]] = r.Expr
		}
	}
	for _, code := range xid.Common {
		text := strconv.FormatUint(code, 10)
		assert.Equal(t, "vector("+text+")", known[text], "the series of code %d", code)
	}
	for text, expr := range known {
		assert.Equal(t, "vector("+text+")", expr)
	}
}
