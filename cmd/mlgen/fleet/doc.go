// Package fleet imitates a site: hosts with GPUs whose agents read them,
// training runs and agents that answer requests. The programs are of no real
// client. They trace as the quick start describes for a loop of one's own, with
// the canonical names of docs/vocabulary.md; the agents send the series of the
// gpu receiver.
//
// Everything is simulated, and says so: each resource has ml.simulated, and
// each GPU's series nvidia.gpu.source = simulated. The data is a function of the
// seed and of the times of the steps.
package fleet
