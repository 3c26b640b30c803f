package gpus

import "time"

// rememberSilent is how long the GPUs of a silent host are remembered, of which nobody
// knows what has become, and one that has failed: as long as their problems last.
const rememberSilent = 24 * time.Hour

// silent reports whether no reading of a host's GPUs has come for three of its intervals.
func (f *Fleet) silent(host string, now time.Time) bool {
	one := f.hosts[host]
	return one != nil && one.Silent(now)
}

// asOf is the time until which something is known of a host's GPUs: the time of its last
// reading if it is silent, else now.
func (f *Fleet) asOf(host string, now time.Time) time.Time {
	if f.silent(host, now) {
		return f.hosts[host].Last
	}
	return now
}

// SilentHost is a host whose GPUs are not read any more.
type SilentHost struct {
	// Since is when they were last read, Noticed when the host had been silent for
	// three of its intervals.
	Since, Noticed time.Time
	// Workloads are those that held memory of a GPU then, once for each GPU.
	Workloads []HeldBy
}

// HeldBy is a workload that held a GPU at its last reading.
type HeldBy struct {
	// Run is its ml.run.id, or "".
	Run   string
	Owner Owner
	GPU   Key
	// Worked is when its GPU was last seen to work, zero if it never was.
	Worked time.Time
}

// Silent returns the hosts whose GPUs are not read any more.
func (f *Fleet) Silent(now time.Time) map[string]SilentHost {
	hosts := make(map[string]SilentHost)
	for key, g := range f.all {
		if !f.silent(key.Host, now) {
			continue
		}
		of, host := f.hosts[key.Host], hosts[key.Host]
		host.Since, host.Noticed = of.Last, of.Last.Add(of.After())
		for w, h := range g.holders {
			if h.holds(g, host.Since) {
				host.Workloads = append(host.Workloads, HeldBy{w.Run, h.owner, key, g.worked})
			}
		}
		hosts[key.Host] = host
	}
	return hosts
}

// Read returns when the GPUs of each host were last read.
func (f *Fleet) Read() map[string]time.Time {
	last := make(map[string]time.Time, len(f.hosts))
	for host, of := range f.hosts {
		last[host] = of.Last
	}
	return last
}
