package rastest

import (
	"fmt"
	"strings"
)

// Communicator is a communicator of an answer.
type Communicator struct {
	Hash  string // such as 0x1a
	Size  int
	Ranks []Rank
	// Missing are the ranks that have not responded.
	Missing []Rank
}

// Rank is a rank of a communicator.
type Rank struct {
	Rank   int
	Host   string
	PID    int
	Device int
	// AllReduce is how many operations of this kind it has launched. It has
	// launched as many of each other kind as its communicator has ranks.
	AllReduce int
	// Starting reports whether it is still being made.
	Starting bool
	// Unresponsive and Dead are those of a missing rank.
	Unresponsive, Dead bool
}

// Text returns an answer as NCCL writes it.
func Text(all ...Communicator) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"nccl_version\": \"2.30.7\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": 13000,\n"+
		"  \"timestamp\": \"2026-08-22 10:00:00\",\n  \"communicators_count\": %d,\n  \"communicators\": [\n", len(all))
	for i := range all {
		if i > 0 {
			b.WriteString(",\n")
		}
		all[i].write(&b)
	}
	b.WriteString("\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.012,\n    \"timeouts_count\": 0\n  }\n}\n")
	return b.String()
}

// WithoutCommas removes the comma after the process of missing ranks, as NCCL 2.28.9
// does.
func WithoutCommas(text string) string {
	head, missing, _ := strings.Cut(text, `"missing_ranks": [`)
	var b strings.Builder
	for line := range strings.Lines(missing) {
		if strings.Contains(line, `"nvml_dev"`) {
			line = strings.Replace(line, ",", "", 1)
		}
		b.WriteString(line)
	}
	return head + `"missing_ranks": [` + b.String()
}

func (c *Communicator) write(b *strings.Builder) {
	fmt.Fprintf(b, "    {\n      \"hash\": %q,\n      \"secondary_hash\": \"0x2:0x3\",\n      \"size\": %d,\n"+
		"      \"ranks_count\": %d,\n      \"missing_ranks_count\": %d,\n      \"ranks\": [\n", c.Hash, c.Size, len(c.Ranks), len(c.Missing))
	for i := range c.Ranks {
		if i > 0 {
			b.WriteString(",\n")
		}
		c.Ranks[i].begin(b)
		state := 0
		if c.Ranks[i].Starting {
			state = 7
		}
		fmt.Fprintf(b, "            \"init_state\": %d,\n            \"async_error\": 0,\n            \"finalize_called\": false,\n"+
			"            \"destroy_flag\": false,\n            \"abort_flag\": false\n          },\n"+
			"          \"collective_counts\": {\n            \"Broadcast\": %d,\n            \"Reduce\": %[2]d,\n            \"AllGather\": %[2]d,\n"+
			"            \"ReduceScatter\": %[2]d,\n            \"AllReduce\": %d\n          }\n        }", state, c.Size, c.Ranks[i].AllReduce)
	}
	b.WriteString("\n      ],\n      \"missing_ranks\": [\n")
	for i := range c.Missing {
		if i > 0 {
			b.WriteString(",\n")
		}
		c.Missing[i].begin(b)
		fmt.Fprintf(b, "            \"unresponsive\": %t,\n            \"considered_dead\": %t\n          }\n        }", c.Missing[i].Unresponsive, c.Missing[i].Dead)
	}
	b.WriteString("\n      ]\n    }")
}

func (r *Rank) begin(b *strings.Builder) {
	fmt.Fprintf(b, "        {\n          \"rank\": %d,\n          \"host\": %q,\n          \"pid\": %d,\n          \"cuda_dev\": %d,\n          \"nvml_dev\": %[4]d,\n          \"status\": {\n",
		r.Rank, r.Host, r.PID, r.Device)
}
