// Package backends asks real servers for LLM applications, Arize Phoenix and MLflow,
// what they show of recorded LLM clients: tokens, models, kinds, failures, sessions and
// costs. The recordings of e2e/genai reach them in three ways: as they were sent,
// through agent.yaml, and with llm-backend.yaml over it. The test writes the tables of
// docs/llm-backends.md.
package backends
