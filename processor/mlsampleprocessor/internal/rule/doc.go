// Package rule has the rules that decide about one unit at a time: which steps
// and conversations a systematic sample contains, what is slow, and what is
// rare. They know neither spans nor pdata.
package rule
