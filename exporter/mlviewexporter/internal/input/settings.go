package input

import "time"

// Settings configure a Store. NewStore replaces zero values by the defaults.
type Settings struct {
	// Interval is how long a State is kept before it is computed again, and the
	// least time between two points of a curve; 2 seconds by default.
	Interval time.Duration
	// History is how long curves and ended runs are kept; 12 hours by default.
	History time.Duration
	// MaxRuns and MaxGPUs limit the runs and GPUs; 1000 and 1024 by default.
	MaxRuns, MaxGPUs int
	// MaxTraces, SpansPerTrace and TraceBytes limit the held traces; 200, 2000
	// and 64 MiB by default.
	MaxTraces, SpansPerTrace int
	TraceBytes               int64
	// Content reports whether whole messages of errors are held. Otherwise only
	// their first 200 characters are, as in the groups of repro_gen. Prompts,
	// completions and arguments are never held.
	Content bool
	// Owners are the names of owners by uid, user name, pod, hash or service.
	Owners map[string]string
	// SlowCall is the duration above which a call is marked as slow; 1 second by
	// default, as in ml_metrics.
	SlowCall time.Duration
	// Reproductions reports whether SetFailures is called with what repro_gen writes.
	// Otherwise no failure has a command, and the rows say so.
	Reproductions bool
	// Withheld reports whether it is not, because anybody can read the page.
	Withheld bool
	// JaegerURL is the address of Jaeger, to which traces are linked. Empty means
	// no links.
	JaegerURL string
	// Fleet reports whether all data comes from other collectors, which are told apart
	// by Point.From. Otherwise Point.From and SeeConnection are ignored.
	Fleet bool
	// Version is the version of the distribution.
	Version string
	// Now returns the time; time.Now by default.
	Now func() time.Time
}

// WithDefaults returns the settings with the defaults in place of zero values.
func (s Settings) WithDefaults() Settings {
	orDefault(&s.Interval, 2*time.Second)
	orDefault(&s.History, 12*time.Hour)
	orDefault(&s.MaxRuns, 1000)
	orDefault(&s.MaxGPUs, 1024)
	orDefault(&s.MaxTraces, 200)
	orDefault(&s.SpansPerTrace, 2000)
	orDefault(&s.TraceBytes, 64<<20)
	orDefault(&s.SlowCall, time.Second)
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

func orDefault[T ~int | ~int64](value *T, byDefault T) {
	if *value <= 0 {
		*value = byDefault
	}
}
