// Package scale runs a fleet on one machine: agents, gateways, Prometheus and
// simulated workloads, with the shipped configurations. Each agent is in a
// network namespace of its own, so that the network between an agent and a
// gateway can be cut. One part after another fails, and after each fault what
// the clients sent is compared with what the back end and Prometheus have, and
// with a single collector that was sent the same. In the end no agent and no gateway
// has filled its log: of equal messages it has two a minute, and no stack trace.
//
// With -short the fleet is small and one gateway is killed.
package scale
