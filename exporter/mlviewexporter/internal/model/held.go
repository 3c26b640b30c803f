package model

import (
	"cmp"
	"slices"
	"time"
)

// heldGPU is a GPU of a run.
type heldGPU struct {
	gpu    *gpu
	rank   string
	memory float64
	// silent reports whether the GPU is not read any more.
	silent bool
	// share is 1, or less if other runs use the GPU as well.
	share float64
}

// holdGPUs finds the GPUs of each run, and the users of services that hold GPUs.
func (s *runs) holdGPUs(now time.Time) {
	clear(s.users)
	for _, r := range s.all {
		r.gpus = r.gpus[:0]
	}
	for _, g := range s.gpus.all {
		var users []*run
		first := make(map[*run]int)
		for _, one := range g.workloads(now) {
			user, service := s.owners.user(one.workload()), one.labels.Own[6]
			if service != "" && user != "" {
				if known, again := s.users[service]; again && known != user {
					user = ""
				}
				s.users[service] = user
			}
			if one.labels.Run == "" {
				continue
			}
			r := s.withID(one.labels.Run, service, g.host)
			if r == nil {
				continue
			}
			if at, again := first[r]; again {
				r.gpus[at].memory += one.value
				continue
			}
			first[r] = len(r.gpus)
			users = append(users, r)
			r.gpus = append(r.gpus, heldGPU{gpu: g, rank: one.labels.Rank, memory: one.value, share: 1, silent: g.readings.Silent(now)})
		}
		for _, r := range users {
			r.gpus[first[r]].share = 1 / float64(len(users))
		}
	}
	for _, r := range s.all {
		slices.SortFunc(r.gpus, func(a, b heldGPU) int { return compareGPUs(a.gpu, b.gpu) })
	}
}

// userOf returns the user of the workload of a GPU that belongs to a run.
func (s *runs) userOf(g *gpu, of *run) string {
	for _, one := range g.streams {
		if l := &one.labels; one.series == GPUWorkload && l.Run == of.id && l.Own[4] != "" && s.withID(l.Run, l.Own[6], g.host) == of {
			return s.owners.user(one.workload())
		}
	}
	return ""
}

// holder returns the workload of a stream. known is false if nothing is known of
// it: its memory is not attributed.
func (s *runs) holder(one *stream) (holder Holder, known bool) {
	l := &one.labels
	join, service := l.Own[5], l.Own[6]
	holder = Holder{RunID: l.Run, Service: service, Rank: l.Rank, Join: join, Memory: finite(one.value)}
	holder.Name, holder.Owner = s.owners.named(one.workload(), service)
	if r := s.withID(l.Run, service, l.Host); r != nil {
		holder.Run, holder.Service = r.key, r.service
		if holder.Owner == "" {
			holder.Owner = s.owners.owner(r.user, r.service)
		}
	}
	return holder, holder.RunID != "" || holder.Name != "" || holder.Service != ""
}

// ownerOf returns the owner of a run: its user, else that of its GPUs' workloads,
// else that of the workloads that name its service.
func (s *runs) ownerOf(r *run) string {
	user := r.user
	for i := 0; user == "" && i < len(r.gpus); i++ {
		user = s.userOf(r.gpus[i].gpu, r)
	}
	return s.owners.owner(cmp.Or(user, s.users[r.service]), r.service)
}

// ownerOfService returns the owner of a service without a run: the user that its
// spans name, else that of the GPU workloads that name the service.
func (s *runs) ownerOfService(of *service) string {
	return s.owners.owner(cmp.Or(of.user, s.users[of.name]), of.name)
}
