package secret
import ("testing";"syscall";"fmt";"time";"regexp";"encoding/json";"os")
func cpu() time.Duration { var r syscall.Rusage; syscall.Getrusage(syscall.RUSAGE_SELF,&r); return time.Duration(r.Utime.Nano()+r.Stime.Nano()) }
func TestCPU(t *testing.T) {
	old := []string{`\b(AKIA|ASIA)[0-9A-Z]{16}\b`,`\b(gh[pousr]_|github_pat_|hf_|glpat-|sk-|xox[abeprs]-)[A-Za-z0-9_-]{16,}`,`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?`,`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~=-]{16,}`,`://[^/\s:@]+:[^/\s@]+@`,`(?i)(api[_-]?key|access[_-]?key|secret|password|passwd|(access|auth|refresh|id)[_-]?token|signature)["']?\s*[=:]\s*["']?[^\s&"',;]{4,}`,`(?i)--(api-key|secret|password|([a-z]+-)?token)[= ]\S+`}
	var oldRes []*regexp.Regexp; for _, o := range old { oldRes = append(oldRes, regexp.MustCompile(o)) }
	var all []attribute
	for _, r := range recordings { all = append(all, read(t, r.pattern)...) }
	var ts []string; size := 0
	for _, a := range all { ts = append(ts, a.text); size += len(a.text) }
	b, _ := json.Marshal(ts); os.WriteFile("/tmp/rd/recorded.json", b, 0o600)
	st := stockPatterns()
	for name, f := range map[string]func(attribute){
		"ours": func(a attribute){ Redact(a.text) }, "ours value": func(a attribute){ Value(a.key,a.text) },
		"stock new": func(a attribute){ for _, p := range st { p.MatchString(a.text) } },
		"stock old": func(a attribute){ for _, p := range oldRes { p.MatchString(a.text) } },
	} {
		c := cpu(); n := 0
		for n < 3 { for _, a := range all { f(a) }; n++ }
		d := (cpu()-c)/time.Duration(n)
		fmt.Printf("%s: %.2f us/text, %.1f us/KiB\n", name, float64(d.Nanoseconds())/1000/float64(len(all)), float64(d.Nanoseconds())/1000/float64(size)*1024)
	}
}
