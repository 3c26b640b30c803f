//go:build !unix

package store

import (
	"io/fs"
	"os"
)

// Without Unix owners and modes, who may use the folder is what its access
// control list says; nothing is checked.
func ownedByUser(fs.FileInfo) bool { return true }

func lockFile(*os.File) error { return nil }

// A folder cannot be synced on its own here.
func syncDirectory(*os.Root, string) error { return nil }
