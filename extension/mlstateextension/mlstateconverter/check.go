package mlstateconverter

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// check returns what the stock validation does not see and what makes the start fail, or
// delivers nothing: listening endpoints without a port or with a scheme, ports that are
// none or used twice, extensions that are referred to and not started, a port in a name to
// be resolved, URLs without a scheme.
func check(conf *confmap.Conf) error {
	c := checked{started: map[string]bool{}, ports: map[string]listener{}}
	switch ids := conf.Get("service::extensions").(type) {
	case nil:
	case []any:
		for _, id := range ids {
			c.started[fmt.Sprint(id)] = true
		}
	default:
		return fmt.Errorf("service::extensions is %q; it must be a list, such as [health_check]", fmt.Sprint(ids))
	}
	used := map[string]map[string]bool{"extensions": c.started, "receivers": {}, "processors": {}, "exporters": {}}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for _, pipeline := range pipelines {
		parts, _ := pipeline.(map[string]any)
		for kind, ids := range parts {
			for _, id := range list(ids) {
				if used[kind] != nil {
					used[kind][fmt.Sprint(id)] = true
				}
			}
		}
	}
	for _, kind := range []string{"extensions", "receivers", "processors", "exporters"} {
		for _, id := range slices.Sorted(maps.Keys(used[kind])) {
			listens := kind == "receivers" || kind == "extensions" || typeOf(id) == "prometheus" || typeOf(id) == "ml_view"
			c.walk(kind+"::"+id, at(conf.Get(kind), id), listens)
		}
	}
	for i, reader := range list(conf.Get("service::telemetry::metrics::readers")) {
		if own, ok := at(reader, "pull", "exporter", "prometheus").(map[string]any); ok && own["host"] != nil && own["port"] != nil {
			c.listen(fmt.Sprintf("service::telemetry::metrics::readers[%d]", i), fmt.Sprint(own["host"]), fmt.Sprint(own["port"]), "tcp")
		}
	}
	return errors.Join(c.errs...)
}

// urls are the types of exporters whose endpoint is a URL.
var urls = []string{"otlp_http", "otlphttp", "prometheus_remote_write", "prometheusremotewrite", "zipkin"}

type checked struct {
	started map[string]bool
	ports   map[string]listener // by protocol and port
	errs    []error
}

// listener is the first that has a port, and its host.
type listener struct{ key, host string }

func (c *checked) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// walk checks a value and what it contains.
func (c *checked) walk(key string, value any, listens bool) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			c.walk(fmt.Sprintf("%s[%d]", key, i), item, listens)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner := key + "::" + name
			text, _ := value[name].(string)
			switch {
			case name == "middlewares":
				for _, item := range list(value[name]) {
					if id, ok := at(item, "id").(string); ok {
						c.refer(inner, id)
					}
				}
			case (name == "authenticator" || name == "storage") && text != "":
				c.refer(inner, text)
			case name == "endpoint" && text != "" && listens:
				c.endpoint(inner, text, fmt.Sprint(value["transport"]))
			case name == "port" && strings.HasSuffix(key, "::resolver::dns"):
				c.port(key, fmt.Sprint(value[name]))
			case name == "endpoint" && text != "" && slices.Contains(urls, typeOf(key[strings.Index(key, "::")+2:])) && !strings.HasPrefix(text, "http"):
				c.fail("%s is %q%s; it must begin with http:// or https://", inner, text, variables(text))
			case name == "hostname" && strings.HasSuffix(key, "::resolver::dns") && strings.Contains(text, ":"):
				if _, err := netip.ParseAddr(text); err != nil {
					c.fail("%s is %q%s; it must be a name without a port, which has a key of its own", inner, text, variables(text))
				}
			default:
				c.walk(inner, value[name], listens)
			}
		}
	}
}

// refer checks that an extension is started.
func (c *checked) refer(key, id string) {
	if !c.started[id] {
		c.fail("%s is %q; it must be in service::extensions, which has %s", key, id, strings.Join(slices.Sorted(maps.Keys(c.started)), ", "))
	}
}

// endpoint checks where a server listens. What is a path is no server of a port, nor what
// an extension names with a scheme.
func (c *checked) endpoint(key, text, transport string) {
	scheme := strings.Contains(text, "://")
	if scheme && strings.HasPrefix(key, "extensions::") || strings.HasPrefix(transport, "unix") {
		return
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" || scheme {
		c.fail("%s is %q%s; it must be an address and a port, such as 127.0.0.1:4317", key, text, variables(text))
		return
	}
	protocol := "tcp"
	if strings.HasPrefix(transport, "udp") || strings.Contains(key, "receivers::statsd") && !strings.HasPrefix(transport, "tcp") ||
		strings.Contains(key, "::thrift_compact") || strings.Contains(key, "::thrift_binary") {
		protocol = "udp"
	}
	c.listen(key, host, port, protocol)
}

// listen checks that no other server has the port of an address.
func (c *checked) listen(key, host, port, protocol string) {
	if port == "0" || !c.port(key, port, net.JoinHostPort(host, port)) {
		return
	}
	switch host {
	case "localhost":
		host = "127.0.0.1"
	case "0.0.0.0", "::":
		host = ""
	}
	other, taken := c.ports[protocol+port]
	if !taken {
		c.ports[protocol+port] = listener{key, host}
	} else if other.host == host || other.host == "" || host == "" {
		c.fail("%s has port %s%s, and so has %s; it must be another one", key, port, variables(net.JoinHostPort(host, port), port), other.key)
	}
}

// port checks a port's number or name. Whole values that have it may be variables'.
func (c *checked) port(key, port string, whole ...string) bool {
	_, err := net.LookupPort("tcp", port)
	if err != nil {
		c.fail("%s has port %s%s; it must be a number up to 65535", key, port, variables(append(whole, port)...))
	}
	return err == nil
}

// variables names the environment variables that have one of these values.
func variables(values ...string) string {
	var names []string
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(values, value) && value != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return ", the value of " + strings.Join(names, " and ")
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// at returns a value within maps.
func at(value any, keys ...string) any {
	for _, key := range keys {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}
	return value
}
