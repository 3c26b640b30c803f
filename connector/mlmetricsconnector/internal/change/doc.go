// Package change notices what is new of programs, runs and hosts: the first time
// that a value is another one than before. It does not use pdata.
package change
