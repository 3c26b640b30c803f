// Package run answers one question: which run does a process belong to?
//
// A run is one execution of training or of an agent. Its id is one that the
// process reports, or a hash of what tells the process from others if its
// client is known to run once a process.
package run
