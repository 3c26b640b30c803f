package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// taskWeaver is the vocabulary of TaskWeaver, an agent framework. It estimates
// its token counts. The session id is on the root span only, which arrives
// last.
func taskWeaver() table.Table {
	t := table.Table{
		Name:     "taskweaver",
		Title:    "TaskWeaver",
		Page:     "https://github.com/microsoft/TaskWeaver",
		Services: []string{"taskweaver*"},
		Scopes:   []string{"taskweaver"},
		Traits:   []table.Trait{table.ProcessIsRun, table.TraceIsRun, table.EstimatesTokens, table.ModelsElsewhere},
		// The executor returns the traceback of the code as its output.
		Calls: table.CallKeys{
			CodeSpans: []string{"CodeInterpreter", "CodeExecutor"}, Code: []string{"code"}, Output: []string{"result", "out.message"},
		},
		ToolArguments: []string{"code"},
		Span: []table.Alias{
			{Source: "session_id", Canonical: mlattr.SessionID},
			{Source: "session_id", Canonical: mlattr.GenAIConversationID},
			{Source: "round_id", Canonical: mlattr.RequestID},
			{Source: "prompt_size", Canonical: mlattr.GenAIInputTokens},
			{Source: "output_size", Canonical: mlattr.GenAIOutputTokens},
		},
		Point: []table.Alias{
			{Source: "direction", Canonical: mlattr.GenAITokenType},
		},
		Metrics: []table.Metric{
			// The direction of the points is the token type.
			{Source: "prompt_size", Measure: table.MeasureTokens, Instrument: table.Counter, Everyday: true},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "Session.send_message", Operation: "send_message", Role: "Session", Identifies: true},
			{Match: table.Exact, Text: "Session._send_text_message", Operation: "send_text_message", Role: "Session", Identifies: true},
			{Match: table.Exact, Text: "_send_message", Operation: "send_message", Role: "Session"},
			{Match: table.Exact, Text: "Planner.reply", Operation: "reply", Role: "Planner"},
			// Any program may have a session that stops.
			{Match: table.Exact, Text: "Session.stop", Operation: "stop", Role: "Session"},
			{Match: table.Exact, Text: "Session.update_session_var", Operation: "update_session_var", Role: "Session"},
			{Match: table.Exact, Text: "Session._upload_file", Operation: "upload_file", Role: "Session"},
			{Match: table.Exact, Text: "CodeInterpreter.verify_code", Operation: "verify_code", Role: "CodeInterpreter", Identifies: true},
			{Match: table.Exact, Text: "RoundCompressor.compress_rounds", Operation: "compress_rounds", Role: "RoundCompressor", Identifies: true},
			{Match: table.Exact, Text: "RoundCompressor._summarize", Operation: "summarize", Role: "RoundCompressor", Identifies: true},
			{Match: table.Exact, Text: "ExperienceGenerator.summarize_experience", Operation: "summarize_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: table.Exact, Text: "ExperienceGenerator.refresh", Operation: "refresh", Role: "ExperienceGenerator", Identifies: true},
			{Match: table.Exact, Text: "ExperienceGenerator.load_experience", Operation: "load_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: table.Exact, Text: "ExperienceGenerator.retrieve_experience", Operation: "retrieve_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: table.Exact, Text: "CodeExecutor.execute_code", Operation: "execute_code", Role: "CodeExecutor", Identifies: true, Call: table.WholeCall, CallOf: "execute_code"},
			// It starts the kernel that runs the code, unless there is one.
			{Match: table.Exact, Text: "start", Operation: "start", Role: "CodeExecutor", Call: table.QueuePart, CallOf: "execute_code"},
			{Match: table.Exact, Text: "load_plugin", Operation: "load_plugin", Role: "CodeExecutor", Call: table.WholeCall, CallOf: "load_plugin"},
			{Match: table.Exact, Text: "run_code", Operation: "run_code", Role: "CodeExecutor", Call: table.FunctionPart, CallOf: "execute_code"},
		},
	}
	for _, role := range []string{"CodeGenerator", "CodeGeneratorCLIOnly", "CodeGeneratorPluginOnly", "CodeInterpreter", "CodeInterpreterCLIOnly", "CodeInterpreterPluginOnly"} {
		t.Names = append(t.Names, table.NameRule{Match: table.Exact, Text: role + ".reply", Operation: "reply", Role: role, Identifies: true})
	}
	return t
}
