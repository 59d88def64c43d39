package cgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Pids are the processes in the cgroup and below it, in rising order, without zombies.
func (g *Group) Pids() ([]int, error) {
	var all []int
	for _, dir := range g.dirs {
		pids, err := dir.pids()
		if err != nil && !isGone(err) {
			return nil, fmt.Errorf("list processes of cgroup %s: %w", g.below, err)
		}
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Kill ends all processes of the cgroup but except, if that is not 0, and returns when it is proved that
// none of them is left. What will not die until ctx ends is a *proc.StuckError.
func (g *Group) Kill(ctx context.Context, except int) error {
	if err := g.kill(ctx, except); err != nil {
		return fmt.Errorf("kill cgroup %s: %w", g.below, err)
	}
	return nil
}

func (g *Group) kill(ctx context.Context, except int) error {
	for pass := 0; ; pass++ {
		pids, err := g.others(except)
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := g.killOnce(ctx, except); err != nil {
			return err
		}
		if !g.awaitChange(ctx, pass, except) {
			pids, err := g.others(except)
			if err != nil || len(pids) == 0 {
				return err
			}
			return proc.Stuck(pids)
		}
	}
}

func (g *Group) others(except int) ([]int, error) {
	pids, err := g.Pids()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == except && except != 0 }), err
}

// killOnce kills all that is there, and all that is born meanwhile. cgroup.kill would kill who is excepted too; without
// it nobody forks while the cgroup is frozen, and who cannot be frozen in time is killed all the same.
func (g *Group) killOnce(ctx context.Context, except int) error {
	if dir, ok := g.dirs[""]; ok && except == 0 && dir.has("cgroup.kill") {
		return ignoreGone(dir.write("cgroup.kill", "1"))
	}
	brief, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	frozen := g.freeze(brief)
	err := g.signal(except)
	// Frozen, a process of v1 does not even die.
	return errors.Join(err, frozen, g.Thaw())
}

// freezePatience is how long a process may take to reach a point at which it can be frozen.
const freezePatience = 100 * time.Millisecond

// signal sends SIGKILL to all but one. A number is trusted only if the process it named when it was pinned is in the
// cgroup afterwards.
func (g *Group) signal(except int) error {
	pids, err := g.others(except)
	if err != nil {
		return err
	}
	pinned := map[int]int{}
	defer func() {
		for _, fd := range pinned {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case errors.Is(err, unix.ENOSYS): // before Linux 5.3
			fd = -1
		case err != nil: // it has ended, or this pid namespace has no number for it
			continue
		}
		pinned[pid] = fd
	}
	still, err := g.others(except)
	if err != nil {
		return err
	}
	for _, pid := range still {
		fd, ok := pinned[pid]
		if !ok {
			continue
		}
		if fd < 0 {
			delete(pinned, pid)
			err = errors.Join(err, ignoreEnded(unix.Kill(pid, unix.SIGKILL)))
			continue
		}
		err = errors.Join(err, ignoreEnded(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)))
	}
	return err
}

func ignoreEnded(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Freeze stops all processes of the cgroup where they stand; it returns when they do, or with ctx's error, and
// then some may. Without a freezer it does nothing.
func (g *Group) Freeze(ctx context.Context) error {
	err := g.freeze(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("freeze cgroup %s: %w", g.below, err)
	}
	return nil
}

// freeze is content with a process that does not freeze until ctx ends.
func (g *Group) freeze(ctx context.Context) error {
	for pass := 0; ; pass++ {
		done, err := g.setFrozen(true)
		if err != nil || done || !proc.Pause(ctx, pass) {
			return err
		}
	}
}

// Thaw lets the processes continue.
func (g *Group) Thaw() error {
	if _, err := g.setFrozen(false); err != nil {
		return fmt.Errorf("thaw cgroup %s: %w", g.below, err)
	}
	return nil
}

// setFrozen tells whether the cgroup is in the state that was asked for. On v1 it is asked for again and again: a
// process that was forked meanwhile keeps it from the frozen state until the next write.
func (g *Group) setFrozen(frozen bool) (done bool, err error) {
	if dir, ok := g.dirs["freezer"]; ok {
		want := map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
		if err := dir.write("freezer.state", want); err != nil {
			return isGone(err), ignoreGone(err)
		}
		state, err := dir.read("freezer.state")
		return state == want || isGone(err), ignoreGone(err)
	}
	dir, ok := g.dirs[""]
	if !ok || !dir.has("cgroup.freeze") {
		return true, nil
	}
	want := map[bool]string{true: "1", false: "0"}[frozen]
	if err := dir.write("cgroup.freeze", want); err != nil {
		return isGone(err), ignoreGone(err)
	}
	events, err := dir.read("cgroup.events")
	return keyed(events, "frozen") == map[bool]uint64{true: 1, false: 0}[frozen] || isGone(err), ignoreGone(err)
}

func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// awaitChange waits between two looks at the cgroup until something may have changed; false when ctx is over. On v2 the
// kernel says when the last process has gone.
func (g *Group) awaitChange(ctx context.Context, pass, except int) bool {
	dir, ok := g.dirs[""]
	if !ok || except != 0 {
		return proc.Pause(ctx, pass)
	}
	events, err := dir.file("cgroup.events", unix.O_RDONLY)
	if err != nil {
		return proc.Pause(ctx, pass)
	}
	defer events.Close()
	// Read first: an event counts from there.
	if n, err := events.Read(make([]byte, 128)); err != nil || n == 0 {
		return proc.Pause(ctx, pass)
	}
	text, err := dir.read("cgroup.events")
	if err != nil || keyed(text, "populated") == 0 {
		return proc.Pause(ctx, pass)
	}
	fds := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
	_, _ = unix.Poll(fds, int(pollSlice.Milliseconds())) // whatever it says, the caller looks again
	return ctx.Err() == nil
}

// pollSlice bounds a wait that ctx cannot interrupt.
const pollSlice = 50 * time.Millisecond
