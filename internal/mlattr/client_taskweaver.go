package mlattr

// taskWeaver is the vocabulary of TaskWeaver, an agent framework. It estimates
// its token counts. The session id is on the root span only, which arrives
// last.
func taskWeaver() Table {
	t := Table{
		Name:     "taskweaver",
		Title:    "TaskWeaver",
		Page:     "https://github.com/microsoft/TaskWeaver",
		Services: []string{"taskweaver*"},
		Scopes:   []string{"taskweaver"},
		Traits:   []Trait{ProcessIsRun, TraceIsRun, EstimatesTokens, ModelsElsewhere},
		// The executor returns the traceback of the code as its output.
		Calls: CallKeys{
			CodeSpans: []string{"CodeInterpreter", "CodeExecutor"}, Code: []string{"code"}, Output: []string{"result", "out.message"},
		},
		ToolArguments: []string{"code"},
		Span: []Alias{
			{Source: "session_id", Canonical: SessionID},
			{Source: "session_id", Canonical: GenAIConversationID},
			{Source: "round_id", Canonical: RequestID},
			{Source: "prompt_size", Canonical: GenAIInputTokens},
			{Source: "output_size", Canonical: GenAIOutputTokens},
		},
		Point: []Alias{
			{Source: "direction", Canonical: GenAITokenType},
		},
		Metrics: []Metric{
			// The direction of the points is the token type.
			{Source: "prompt_size", Measure: MeasureTokens, Instrument: Counter, Everyday: true},
		},
		Names: []NameRule{
			{Match: Exact, Text: "Session.send_message", Operation: "send_message", Role: "Session", Identifies: true},
			{Match: Exact, Text: "Session._send_text_message", Operation: "send_text_message", Role: "Session", Identifies: true},
			{Match: Exact, Text: "_send_message", Operation: "send_message", Role: "Session"},
			{Match: Exact, Text: "Planner.reply", Operation: "reply", Role: "Planner"},
			// Any program may have a session that stops.
			{Match: Exact, Text: "Session.stop", Operation: "stop", Role: "Session"},
			{Match: Exact, Text: "Session.update_session_var", Operation: "update_session_var", Role: "Session"},
			{Match: Exact, Text: "Session._upload_file", Operation: "upload_file", Role: "Session"},
			{Match: Exact, Text: "CodeInterpreter.verify_code", Operation: "verify_code", Role: "CodeInterpreter", Identifies: true},
			{Match: Exact, Text: "RoundCompressor.compress_rounds", Operation: "compress_rounds", Role: "RoundCompressor", Identifies: true},
			{Match: Exact, Text: "RoundCompressor._summarize", Operation: "summarize", Role: "RoundCompressor", Identifies: true},
			{Match: Exact, Text: "ExperienceGenerator.summarize_experience", Operation: "summarize_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: Exact, Text: "ExperienceGenerator.refresh", Operation: "refresh", Role: "ExperienceGenerator", Identifies: true},
			{Match: Exact, Text: "ExperienceGenerator.load_experience", Operation: "load_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: Exact, Text: "ExperienceGenerator.retrieve_experience", Operation: "retrieve_experience", Role: "ExperienceGenerator", Identifies: true},
			{Match: Exact, Text: "CodeExecutor.execute_code", Operation: "execute_code", Role: "CodeExecutor", Identifies: true, Call: WholeCall, CallOf: "execute_code"},
			// It starts the kernel that runs the code, unless there is one.
			{Match: Exact, Text: "start", Operation: "start", Role: "CodeExecutor", Call: QueuePart, CallOf: "execute_code"},
			{Match: Exact, Text: "load_plugin", Operation: "load_plugin", Role: "CodeExecutor", Call: WholeCall, CallOf: "load_plugin"},
			{Match: Exact, Text: "run_code", Operation: "run_code", Role: "CodeExecutor", Call: FunctionPart, CallOf: "execute_code"},
		},
	}
	for _, role := range []string{"CodeGenerator", "CodeGeneratorCLIOnly", "CodeGeneratorPluginOnly", "CodeInterpreter", "CodeInterpreterCLIOnly", "CodeInterpreterPluginOnly"} {
		t.Names = append(t.Names, NameRule{Match: Exact, Text: role + ".reply", Operation: "reply", Role: role, Identifies: true})
	}
	return t
}
