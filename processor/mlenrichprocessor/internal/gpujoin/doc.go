// Package gpujoin answers one question: whose GPU is it?
//
// An Index remembers where the processes of runs were seen: on which host, in
// which container, as which rank. Join compares that with the workloads that
// the gpu receiver reports, and adds the run to their points. The rules are in
// rules.go, the surest first.
package gpujoin
