// Package release checks what distribution/release.sh has written, which runs it: that
// the release is whole, and that each part has its version.
package release
