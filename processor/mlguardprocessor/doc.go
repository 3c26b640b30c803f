// Package mlguardprocessor is the ml_guard processor. Its section bounds limits
// incoming data (internal/bounds), identities limits the identities that become
// labels (internal/identity), and content exports only text that an allow-list
// permits (internal/content).
package mlguardprocessor

//go:generate mdatagen metadata.yaml
