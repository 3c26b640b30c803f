// Package identity is the section identities of ml_guard. It admits identities
// that become labels in Prometheus, such as services, runs and label values, up
// to a limit for each kind. Values that are not admitted are replaced and
// marked as overflow. Points that Prometheus' exporter would lose are repaired.
package identity
