// Package identity is the section identities of ml_guard: it admits the
// identities that become labels in Prometheus, such as services, runs and values
// of labels, up to a limit of each kind. What is not admitted is marked as
// overflow.
package identity
