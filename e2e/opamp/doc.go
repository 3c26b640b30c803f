// Package opamp tests what the built binary reports to a real OpAMP server, and which
// secrets of its configuration are in that.
package opamp
