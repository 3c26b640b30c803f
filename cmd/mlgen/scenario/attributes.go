package scenario

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// attr is one attribute. Attributes are kept in a list, because their order
// determines which ones a limit drops.
type attr struct {
	key   string
	value any
}

// put sets attributes in order. It supports only the types that the clients
// send.
func put(to pcommon.Map, attrs []attr) {
	to.EnsureCapacity(to.Len() + len(attrs))
	for _, a := range attrs {
		switch v := a.value.(type) {
		case string:
			to.PutStr(a.key, v)
		case bool:
			to.PutBool(a.key, v)
		case int:
			to.PutInt(a.key, int64(v))
		case int64:
			to.PutInt(a.key, v)
		case float64:
			to.PutDouble(a.key, v)
		case []int64:
			list := to.PutEmptySlice(a.key)
			for _, item := range v {
				list.AppendEmpty().SetInt(item)
			}
		default:
			panic(fmt.Sprintf("attribute %q has unsupported type %T", a.key, a.value))
		}
	}
}

// pythonSDK returns the attributes that the Python SDK's Resource.create sets,
// followed by the service's name. The instance is a random id for each process.
func pythonSDK(seed int64, process, service string) []attr {
	return []attr{
		{"telemetry.sdk.language", "python"},
		{"telemetry.sdk.name", "opentelemetry"},
		{"telemetry.sdk.version", "1.45.1"},
		{"service.instance.id", newSource(seed, process+"/instance").uuid()},
		{"service.name", service},
	}
}
