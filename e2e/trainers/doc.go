// Package trainers shows what ml_enrich and ml_metrics make of what training
// software sends. Each folder of testdata is one program: recording.jsonl is what
// it sent, request by request, or the texts of input what its source says that it
// sends; expected.txt is what is made of it.
package trainers
