// Package ras asks the RAS (reliability, availability and serviceability) service of
// NCCL for the status of a job's communicators, and reads its answers. The service
// is part of every process that uses NCCL.
package ras
