// Package kafka runs the built collector with the shipped configurations for Kafka
// through faults: agents, a real Apache Kafka and gateways are killed and restarted,
// and a gateway joins. It compares the ids of the spans, points and log records that
// the agent acknowledged with the ids that the gateways' back ends received.
package kafka
