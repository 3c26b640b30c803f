package harness

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pathSeparator joins the keys of a path into a configuration, as the
// collector's --set option and its error messages join them.
const pathSeparator = "::"

// TelemetryPath is the path under which the address of the collector's own
// metrics is known.
const TelemetryPath = "service::telemetry::metrics"

// defaultListens are the addresses of components that listen without being
// told where, by the component's type and the path below its configuration.
var defaultListens = map[string]map[string]string{
	"receivers": {
		"otlp::protocols::grpc": "localhost:4317",
		"otlp::protocols::http": "localhost:4318",
		"zipkin":                "localhost:9411",
	},
	"exporters": {
		"ml_view": "127.0.0.1:8890",
	},
	"extensions": {
		"health_check": "localhost:13133",
		"zpages":       "localhost:55679",
	},
}

// listeningExporters are the types of exporters that listen instead of sending.
var listeningExporters = []string{"prometheus", "ml_view"}

// askingReceiver is the type of the receiver whose endpoint is that of a server.
const askingReceiver = "nccl"

// listener is one address that a configuration has a component listen on.
type listener struct {
	// path is that of the map that holds the address, below the component's
	// settings, and joined below the whole configuration where it is a key.
	path []string
	// configured is the address in the configuration.
	configured string
	// actual is the address that the test has it listen on.
	actual string
}

// rebind returns the overrides that move everything a configuration listens on
// to ports that the function free gives on the loopback interface, and the
// listeners by their joined paths.
func rebind(config map[string]any, env []string, free func() int) (overrides map[string]any, listeners map[string]listener) {
	overrides = map[string]any{}
	listeners = map[string]listener{}

	for _, kind := range []string{"receivers", "exporters", "extensions"} {
		components, _ := config[kind].(map[string]any)
		for id, settings := range components {
			componentType, _, _ := strings.Cut(id, "/")
			if kind == "exporters" && !slices.Contains(listeningExporters, componentType) || kind == "receivers" && componentType == askingReceiver {
				continue
			}
			for _, found := range listenersOf(kind, componentType, settings, env) {
				found.path = append([]string{kind, id}, found.path...)
				found.actual = loopback(free())
				listeners[strings.Join(found.path, pathSeparator)] = found
				setPath(overrides, append(slices.Clone(found.path), "endpoint"), found.actual)
			}
		}
	}

	if configured, reader := telemetryReader(config, env); reader != nil {
		port := free()
		reader["host"], reader["port"] = loopbackHost, port
		setPath(overrides, []string{"service", "telemetry", "metrics", "readers"}, []any{
			map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": reader}}},
		})
		listeners[TelemetryPath] = listener{configured: configured, actual: loopback(port)}
	}
	return overrides, listeners
}

// loopbackHost is the only interface that tests use.
const loopbackHost = "127.0.0.1"

func loopback(port int) string { return net.JoinHostPort(loopbackHost, strconv.Itoa(port)) }

// listenersOf returns the addresses to listen on in one component's settings.
func listenersOf(kind, componentType string, settings any, env []string) []listener {
	var found []listener
	var walk func(path []string, node any)
	walk = func(path []string, node any) {
		fields, _ := node.(map[string]any)
		if endpoint, ok := fields["endpoint"].(string); ok {
			endpoint = expandEnv(endpoint, env)
			if _, _, err := net.SplitHostPort(endpoint); err == nil {
				found = append(found, listener{path: path, configured: endpoint})
			}
			return
		}
		byDefault := strings.Join(append([]string{componentType}, path...), pathSeparator)
		if endpoint, ok := defaultListens[kind][byDefault]; ok {
			found = append(found, listener{path: path, configured: endpoint})
			return
		}
		for _, key := range sortedKeys(fields) {
			walk(append(slices.Clone(path), key), fields[key])
		}
	}
	walk(nil, settings)
	return found
}

// telemetryReader returns where a configuration serves the collector's own
// metrics and the settings of the reader that does so, or nil if none does.
func telemetryReader(config map[string]any, env []string) (configured string, reader map[string]any) {
	metrics, _ := lookUp(config, "service", "telemetry", "metrics").(map[string]any)
	if level, _ := metrics["level"].(string); level == "none" {
		return "", nil
	}
	readers, ok := metrics["readers"].([]any)
	if !ok {
		// The reader that a collector has without configuration.
		return "localhost:8888", map[string]any{
			"without_scope_info":  true,
			"without_type_suffix": true,
			"without_units":       true,
		}
	}
	for _, candidate := range readers {
		if own, ok := lookUp(candidate, "pull", "exporter", "prometheus").(map[string]any); ok {
			host := expandEnv(fmt.Sprint(own["host"]), env)
			port := expandEnv(fmt.Sprint(own["port"]), env)
			return net.JoinHostPort(host, port), maps.Clone(own)
		}
	}
	return "", nil
}

var envReference = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)

// expandEnv replaces the references to environment variables by their values
// in env, or by the defaults that the references name.
func expandEnv(text string, env []string) string {
	return envReference.ReplaceAllStringFunc(text, func(reference string) string {
		match := envReference.FindStringSubmatch(reference)
		for _, variable := range slices.Backward(env) {
			if name, value, _ := strings.Cut(variable, "="); name == match[1] {
				return value
			}
		}
		return match[2]
	})
}

// lookUp returns what lies under the keys, or nil.
func lookUp(node any, keys ...string) any {
	for _, key := range keys {
		fields, _ := node.(map[string]any)
		node = fields[key]
	}
	return node
}

// setPath sets a value below the keys and makes the maps on the way.
func setPath(fields map[string]any, keys []string, value any) {
	for _, key := range keys[:len(keys)-1] {
		next, ok := fields[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			fields[key] = next
		}
		fields = next
	}
	fields[keys[len(keys)-1]] = value
}

// merge puts the content of a configuration over another one, as the collector
// does: maps key by key, everything else as a whole.
func merge(config, over map[string]any) {
	for key, value := range over {
		fields, isMap := value.(map[string]any)
		under, wasMap := config[key].(map[string]any)
		if isMap && wasMap {
			merge(under, fields)
			continue
		}
		config[key] = value
	}
}

func sortedKeys[V any](fields map[string]V) []string {
	return slices.Sorted(maps.Keys(fields))
}
