package proc

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// kill sends SIGKILL to the process of s and to no other: its number may have been given to another since.
func (h Host) kill(s Stat) error {
	fd, err := unix.PidfdOpen(s.PID, 0)
	switch {
	case errors.Is(err, unix.ENOSYS): // before Linux 5.3
		return unix.Kill(s.PID, unix.SIGKILL)
	case err != nil:
		return err
	}
	defer unix.Close(fd)
	again, err := h.Stat(s.PID)
	if err != nil || again.Start != s.Start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// WithDescendants returns the processes of roots and all below them, in order of all.
func WithDescendants(all []Stat, roots func(Stat) bool) []Stat {
	children := map[int][]int{}
	in := make([]bool, len(all))
	var todo []int
	for i, s := range all {
		children[s.PPID] = append(children[s.PPID], i)
		if roots(s) {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if in[i] {
			continue
		}
		in[i] = true
		todo = append(todo, children[all[i].PID]...)
	}
	var found []Stat
	for i, s := range all {
		if in[i] {
			found = append(found, s)
		}
	}
	return found
}

// ancestors are pid and all above it.
func ancestors(all []Stat, pid int) []int {
	above := []int{pid}
	for {
		i := slices.IndexFunc(all, func(s Stat) bool { return s.PID == above[len(above)-1] })
		if i < 0 || all[i].PPID == 0 || slices.Contains(above, all[i].PPID) {
			return above
		}
		above = append(above, all[i].PPID)
	}
}

// Pause waits between two passes of a loop that looks again, longer each time; false when ctx is over.
func Pause(ctx context.Context, pass int) bool {
	t := time.NewTimer(min(time.Millisecond<<min(pass, 6), 50*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// KillAll kills what find returns until find returns nothing twice: a process may be born during one look, unseen, and
// the next look sees it. What is left when ctx ends is returned.
func (h Host) KillAll(ctx context.Context, find func() ([]Stat, error)) ([]StuckProcess, error) {
	for pass, empty := 0, 0; ; pass++ {
		found, err := find()
		if err != nil {
			return nil, err
		}
		var left []StuckProcess
		for _, s := range found {
			p := StuckProcess{PID: s.PID, Name: s.Name, State: s.State}
			if err := h.kill(s); err != nil && !errors.Is(err, unix.ESRCH) {
				p.Err = err
			}
			left = append(left, p)
		}
		empty++
		if len(left) > 0 {
			empty = 0
		}
		if empty == 2 {
			return nil, nil
		}
		if empty == 0 && !Pause(ctx, pass) {
			for i := range left {
				left[i].WaitChannel = WaitChannel(left[i].PID)
			}
			return left, nil
		}
	}
}
