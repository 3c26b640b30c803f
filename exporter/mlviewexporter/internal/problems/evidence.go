package problems

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// addEvidence says what ml_metrics has concluded of a problem, and with it what only the
// page has: the errors of GPUs' drivers, and failures with their reproductions.
func (s *Set) addEvidence(state *api.State, n *api.Need, p *problem, now time.Time) {
	if p.record == nil {
		n.Next = "Nothing else is known until its log record arrives: one comes when its evidence changes. ml_view needs the logs of ml_metrics, too."
	} else {
		n.Value, n.Usual, n.Unit, n.Next, n.Command = p.record.Value, p.record.Usual, p.record.Unit, p.record.Next, command(p.record)
		n.Evidence = append(n.Evidence, p.record.Evidence...)
		if len(p.record.Excluded) > 0 {
			n.Say("without %s", strings.Join(p.record.Excluded, ", "))
		}
	}
	switch p.kind {
	case api.GPUFailed:
		if len(p.gpus) == 0 {
			return
		}
		if xid := s.GPUs.XIDs[p.gpus[0].Ref]; xid != nil {
			n.Say("%s at %s", strings.TrimSpace("XID "+xid.Code+" "+xid.Message), api.Clock(xid.Time, now))
		}
	case api.RestartLoop:
		for i := range state.Failures {
			if f := &state.Failures[i]; n.Run != "" && f.Run == n.Run { // the newest one
				n.Say("last failure %s in %s at %s", f.Class, cmp.Or(f.Operation, f.Service), api.Clock(api.Value(f.LastSeen), now))
				n.Command = f.Command
				return
			}
		}
	case api.Failing:
		if of := s.Services.All[p.service]; of != nil {
			if recent, usual := of.ErrorRatios(now); recent != nil {
				n.Value, n.Usual, n.Unit = recent, usual, "1"
			}
		}
		s.addFailures(state, n, p.since)
	}
}

// command returns the command for what a record says to do next, of numbers and an id: the
// names in the text are those that clients have sent, and a command is copied to a shell.
func command(r *Record) string {
	switch {
	case r.PID > 0:
		return "py-spy dump --pid " + strconv.FormatInt(r.PID, 10)
	case r.Kind == api.LooksHung:
		device := ""
		if r.GPUIndex != nil {
			device = " -i " + strconv.FormatInt(*r.GPUIndex, 10)
		}
		return "nvidia-smi" + device + " --query-compute-apps=pid,name,used_memory --format=csv"
	case (r.Recovery == mlattr.RecoveryReset || r.Recovery == mlattr.RecoveryDrainAndReset) && uuid.MatchString(r.GPU):
		return "sudo nvidia-smi --gpu-reset -i " + r.GPU
	default:
		return ""
	}
}

// uuid is the form of the id of a GPU that the driver gives, or a recording.
var uuid = regexp.MustCompile(`^GPU-[0-9A-Za-z-]*$`)

// arrivalTolerance is how much earlier a failure may arrive here than where
// ml_metrics counts it.
const arrivalTolerance = 2 * time.Second

// maxClasses limits the classes of failures that evidence names.
const maxClasses = 4

// addFailures names the failures of a service since the onset, and says what to do about
// the most frequent ones.
func (s *Set) addFailures(state *api.State, n *api.Need, since time.Time) {
	type group struct {
		*api.Failure
		n int64
	}
	var groups []group
	for i := range state.Failures {
		f := &state.Failures[i]
		if count := s.Failures.Since(f, since.Add(-arrivalTolerance)); f.Service == n.Service && count > 0 {
			groups = append(groups, group{f, count})
		}
	}
	if len(groups) == 0 {
		return
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.n, a.n) })
	classes := make([]string, len(groups))
	for i, one := range groups {
		classes[i] = one.Class + " " + strconv.FormatInt(one.n, 10) + "×"
	}
	n.Say("since the onset: %s", api.List(classes, maxClasses))
	most := groups[0]
	n.Command = most.Command
	switch class := cmp.Or(most.Class, "the failure"); {
	case most.Command == "":
		n.Next = "Read the last failures of the service: most are " + class + "."
	case most.Replays:
		n.Next = "Reproduce " + class + "."
	default:
		n.Next = "See what is known of " + class + "."
	}
}
