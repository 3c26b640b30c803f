//go:build !(linux || darwin || freebsd)

package store

import "os"

func freeBytes(*os.File) (bytes int64, known bool) { return 0, false }
