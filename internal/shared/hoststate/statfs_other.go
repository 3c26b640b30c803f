//go:build !linux

package hoststate

func statfs(string) {}
