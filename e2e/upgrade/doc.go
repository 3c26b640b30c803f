// Package upgrade tests what docs/canary.md says: that a collector reads the state
// of one that ended, that it moves away what is damaged or of a newer version, and
// that the queries compare two versions side by side.
package upgrade
