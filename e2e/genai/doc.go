// Package genai compares what the components make of recordings of real LLM
// clients with the log of the server that they asked. record.py makes the
// recordings: each program of the folder clients runs, with unmodified packages,
// against the server of model_server.py. The folder others has recordings of more
// clients, of some of which the programs are in the folder unseen. The tests write the
// tables of docs/evidence/clients.md.
package genai
