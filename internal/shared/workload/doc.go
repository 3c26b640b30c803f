// Package workload identifies the workload of a process: its run, rank, Slurm job,
// pod, container, service and user. Its only sources are the process's cgroup
// and a short list of environment variables, from /proc or from a recording.
package workload
