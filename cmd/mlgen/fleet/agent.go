package fleet

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Service describes an agent service, which calls a model and a tool for each
// request.
type Service struct {
	Name, Version, Host, Model, Tool string
	// Requests is the number of requests in a step of the site.
	Requests int
}

// Agent is a service that answers requests.
type Agent struct {
	Service
	*process
	site *Site
	// ratio is the share of requests that fail, with an exception of the class
	// and message. They are spread evenly, so that any hundred requests have
	// their share.
	ratio          float64
	class, message string
	due            float64
	versions       int
}

// Serve adds an agent.
func (s *Site) Serve(service Service) *Agent {
	a := &Agent{Service: service, site: s}
	a.start()
	s.agents = append(s.agents, a)
	return a
}

// start makes the process of a version.
func (a *Agent) start() {
	name := fmt.Sprintf("%s/%d", a.Name, a.versions)
	old := a.process
	a.process = newProcess(a.site.settings.Seed, name, []Attr{
		{"service.name", a.Name},
		{"service.version", a.Version},
		{"service.instance.id", newSource(a.site.settings.Seed, name+"/instance").uuid()},
		{"host.name", a.Host},
		simulated,
	})
	if old != nil {
		a.site.gone = append(a.site.gone, old)
	}
	a.versions++
}

// Deploy replaces the process by one of another version.
func (a *Agent) Deploy(version string) {
	a.Version = version
	a.start()
}

// Fail sets the share of requests whose tool fails, and how.
func (a *Agent) Fail(ratio float64, class, message string) {
	a.ratio, a.class, a.message, a.due = ratio, class, message, 0
}

// answer handles the requests that end in the window before a time.
func (a *Agent) answer(at time.Time, window time.Duration) {
	for i := range a.Requests {
		end := at.Add(-window * time.Duration(a.Requests-1-i) / time.Duration(a.Requests))
		a.due += a.ratio
		failed := a.due >= 1
		if failed {
			a.due--
		}
		a.request(end, failed)
	}
}

func (a *Agent) request(end time.Time, failed bool) {
	chat, tool := seconds(a.between(0.7, 1.4)), seconds(a.between(0.05, 0.3))
	if failed {
		tool = seconds(a.between(2, 2.1))
	}
	begin := end.Add(-chat - tool)
	root := a.root()
	conversation := Attr{"gen_ai.conversation.id", fmt.Sprintf("conversation-%08x", a.Uint32())}
	input, output := 700+a.IntN(900), 80+a.IntN(220)
	a.end(a.below(root), root.span, "chat "+a.Model, ptrace.SpanKindClient, begin, begin.Add(chat),
		Attr{"gen_ai.operation.name", "chat"}, Attr{"gen_ai.provider.name", "openai"},
		Attr{"gen_ai.request.model", a.Model}, Attr{"gen_ai.response.model", a.Model},
		Attr{"gen_ai.usage.input_tokens", input}, Attr{"gen_ai.usage.output_tokens", output},
		Attr{"gen_ai.usage.cache_read.input_tokens", input / 2},
		Attr{"gen_ai.response.time_to_first_chunk", a.between(0.12, 0.3)},
		Attr{"gen_ai.response.finish_reasons", []string{"tool_calls"}}, conversation)
	call := a.end(a.below(root), root.span, "execute_tool "+a.Tool, ptrace.SpanKindInternal, begin.Add(chat), end,
		Attr{"gen_ai.operation.name", "execute_tool"}, Attr{"gen_ai.tool.name", a.Tool}, Attr{"gen_ai.tool.type", "function"}, conversation)
	if failed {
		fail(call, a.class, a.message)
	}
	whole := a.end(root, pcommon.SpanID{}, "invoke_agent "+a.Name, ptrace.SpanKindInternal, begin, end,
		Attr{"gen_ai.operation.name", "invoke_agent"}, Attr{"gen_ai.agent.name", a.Name}, conversation)
	if failed {
		// The exception leaves the agent, too.
		fail(whole, a.class, a.message)
	}
}
