// Package mlguardprocessor is the ml_guard processor. Its section bounds limits
// incoming data (internal/bounds), identities limits the identities that become
// labels (internal/identity), content exports only text that an allow-list permits
// (internal/content), and out drops what a back end does not take.
package mlguardprocessor

//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/identity -run TestKeysAreGenerated -update
