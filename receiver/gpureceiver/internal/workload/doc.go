// Package workload says what a process belongs to: its run, rank, Slurm job,
// pod, container, service and user. It reads the process's environment by a
// short list of names and its cgroup, from /proc or from a recording, and it
// has no other source.
package workload
