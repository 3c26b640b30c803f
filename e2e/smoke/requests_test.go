package smoke

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// maxRequestMiB is the size of a request that a shown configuration may take.
const maxRequestMiB = 4

// ownSources are receivers that take nothing from the network.
var ownSources = []string{"gpu"}

// Every configuration that the project ships or shows limits the requests of
// each of its OTLP receivers, and has ml_guard first in each pipeline that takes
// data from outside.
func TestConfigurationsBoundWhatTheyReceive(t *testing.T) {
	configurations := shownConfigurations(t)
	for name, config := range configurations {
		// A document may show some lines alone, and this one is merged over others, whose
		// pipelines have the processors.
		whole := config["processors"] != nil && config["service"] != nil && name != "docker/collector/collectors.yaml"
		t.Run(name, func(t *testing.T) { assert.Empty(t, unbounded(config, whole)) })
	}
	for _, file := range []string{"distribution/config/agent.yaml", "distribution/config/demo.yaml", "distribution/config/production.yaml", "distribution/config/fleet.yaml",
		"docker/collector/stack.yaml", "docker/jaeger/jaeger.yaml", "examples/groupbytrace/collector.yaml"} {
		assert.Contains(t, configurations, file, "the test does not look at it")
	}
}

// What is shipped to be run checks requests before they are decoded.
func TestShippedConfigurationsCheckRequestsBeforeDecoding(t *testing.T) {
	checked := 0
	for name, config := range shownConfigurations(t) {
		if strings.Contains(name, ".md:") || strings.HasPrefix(name, "docker/jaeger/") {
			continue
		}
		receivers, _ := config["receivers"].(map[string]any)
		for id, settings := range receivers {
			fields, _ := settings.(map[string]any)
			protocols, _ := fields["protocols"].(map[string]any)
			if kind, _, _ := strings.Cut(id, "/"); kind != "otlp" {
				continue
			}
			for protocol, settings := range protocols {
				keys, _ := settings.(map[string]any)
				assert.Equal(t, []any{map[string]any{"id": "ml_guard"}}, keys["middlewares"], "%s: receivers::%s::protocols::%s", name, id, protocol)
				checked++
			}
		}
		if service, _ := config["service"].(map[string]any); has(config, "extensions", "ml_guard") {
			assert.Contains(t, service["extensions"], "ml_guard", name)
		}
	}
	assert.GreaterOrEqual(t, checked, 9)
}

func TestUnboundedConfigurationsAreFound(t *testing.T) {
	for text, faults := range map[string][]string{
		"receivers: {otlp: {protocols: {grpc: }}}":                                   {`receivers::otlp::protocols::grpc lacks "max_recv_msg_size_mib", at most 4`},
		"receivers: {otlp/a: {protocols: {http: {max_request_body_size: 4194305}}}}": {`receivers::otlp/a::protocols::http lacks "max_request_body_size", at most 4194304`},
		"receivers: {otlp: {protocols: {http: {max_request_body_size: 0}}}}":         {`receivers::otlp::protocols::http lacks "max_request_body_size", at most 4194304`},
		"receivers: {zipkin: }": {`receivers::zipkin lacks "max_request_body_size", at most 4194304`},
		"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 4}}}}": nil,
		"service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter, ml_guard]}}}": {
			"service::pipelines::traces does not begin with ml_guard"},
		"service: {pipelines: {metrics: {receivers: [gpu], processors: [memory_limiter]}}}":           nil,
		"{service: {pipelines: {metrics: {receivers: [ml_metrics]}}}, connectors: {ml_metrics: }}":    nil,
		"service: {pipelines: {logs: {receivers: [otlp, gpu], processors: [ml_guard, ml_enrich]}}}":   nil,
		"service: {pipelines: {logs: {receivers: [otlp], processors: [ml_guard/strict, ml_enrich]}}}": nil,
	} {
		var content map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &content), text)
		assert.Equal(t, faults, unbounded(content, true), text)
	}
}

// unbounded lists what of a configuration takes from outside without a bound.
// Only a whole configuration names its pipelines as they run.
func unbounded(config map[string]any, whole bool) (faults []string) {
	receivers, _ := config["receivers"].(map[string]any)
	for id, settings := range receivers {
		kind, _, _ := strings.Cut(id, "/")
		fields, _ := settings.(map[string]any)
		switch kind {
		case "otlp":
			protocols, _ := fields["protocols"].(map[string]any)
			for protocol, settings := range protocols {
				limits, _ := settings.(map[string]any)
				path := "receivers::" + id + "::protocols::" + protocol
				if protocol == "grpc" {
					faults = append(faults, above(path, limits, "max_recv_msg_size_mib", maxRequestMiB)...)
				} else {
					faults = append(faults, above(path, limits, "max_request_body_size", maxRequestMiB<<20)...)
				}
			}
		case "zipkin":
			faults = append(faults, above("receivers::"+id, fields, "max_request_body_size", maxRequestMiB<<20)...)
		}
	}
	service, _ := config["service"].(map[string]any)
	pipelines, _ := service["pipelines"].(map[string]any)
	for id, value := range pipelines {
		pipeline, _ := value.(map[string]any)
		sources, _ := pipeline["receivers"].([]any)
		fromOutside := slices.ContainsFunc(sources, func(source any) bool {
			name := fmt.Sprint(source)
			return !slices.Contains(ownSources, name) && !has(config, "connectors", name)
		})
		processors, _ := pipeline["processors"].([]any)
		if whole && fromOutside && (len(processors) == 0 || !strings.HasPrefix(fmt.Sprint(processors[0]), "ml_guard")) {
			faults = append(faults, "service::pipelines::"+id+" does not begin with ml_guard")
		}
	}
	slices.Sort(faults)
	return faults
}

func above(path string, settings map[string]any, key string, most int) []string {
	if limit, ok := settings[key].(int); ok && limit > 0 && limit <= most {
		return nil
	}
	return []string{fmt.Sprintf("%s lacks %q, at most %d", path, key, most)}
}
