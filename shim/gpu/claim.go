package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/shim/hostlock"
)

// Held are devices that no other agent of this host takes, until Release or the end of this process.
type Held struct {
	Devices []Device
	// Shared are the IDs of devices that the launcher granted though another agent holds them.
	Shared []string
	// Foreign are the IDs of devices that processes of other users announce as theirs, and who those are. Root takes
	// such a device where no other will do: anybody can announce one.
	Foreign map[string]string
	locks   []*hostlock.Lock
}

// Claim chooses devices and locks them. A lock is `gpu/<uuid>` of hostlock: it holds among the agents of a user, and
// those of root hold among all. Devices that others hold are added to w.Busy and another choice is made; so are those
// that another user's agent announces, but root takes these rather than none. What the launcher granted is locked for
// the others to see, and kept if it cannot be.
func Claim(ctx context.Context, devices []Device, w Want) (*Held, error) {
	// One agent chooses at a time, so that a lock seen is a device held and not another's attempt.
	leave := queue(ctx, queueTime)
	defer leave()
	h, err := claim(devices, w, false)
	if errors.Is(err, ErrTooFew) && os.Geteuid() == 0 {
		if h, err := claim(devices, w, true); err == nil {
			return h, nil
		}
	}
	return h, err
}

// claim takes devices that other users announce only beside them.
func claim(devices []Device, w Want, beside bool) (*Held, error) {
	w.Busy = maps.Clone(w.Busy)
	if w.Busy == nil {
		w.Busy = map[string]bool{}
	}
	_, whole, err := w.pool(devices)
	if err != nil {
		return nil, fmt.Errorf("claim GPUs: %w", err)
	}
	for {
		chosen, err := Choose(devices, w)
		if err != nil {
			return nil, fmt.Errorf("claim GPUs: %w", err)
		}
		h := &Held{Devices: chosen}
		taken, err := h.lock(beside)
		switch {
		case err != nil:
			return nil, fmt.Errorf("claim GPUs: %w", errors.Join(err, h.Release()))
		case len(taken) == 0:
			return h, nil
		case whole: // no other choice would be made
			h.Shared = taken
			return h, nil
		}
		if err := h.Release(); err != nil {
			return nil, fmt.Errorf("claim GPUs: %w", err)
		}
		for _, id := range taken {
			w.Busy[id] = true
		}
	}
}

// Now finds the devices in a newer inventory, in their order, and names those that are not there any more.
func (h *Held) Now(devices []Device) (now []Device, missing []string) {
	for _, held := range h.Devices {
		d, ok := find(devices, held.ID())
		if !ok || d.ID() != held.ID() || held.Instance != nil && d.Instance == nil {
			missing = append(missing, held.String())
			continue
		}
		now = append(now, d)
	}
	return now, missing
}

// Concerns tells whether an event is about one of the devices. One of another MIG instance of the same GPU is not.
func (h *Held) Concerns(e Event) bool {
	return slices.ContainsFunc(h.Devices, func(d Device) bool { return d.concerns(e.Device, e.GPUInstance) })
}

// Release gives the devices back. It may be called again.
func (h *Held) Release() error {
	var errs []error
	for _, l := range h.locks {
		errs = append(errs, l.Release())
	}
	h.locks = nil
	return errors.Join(errs...)
}

// lock takes the lock of each device and names those that others hold, or announce unless it is to be taken
// beside them.
func (h *Held) lock(beside bool) (taken []string, err error) {
	for _, d := range h.Devices {
		for _, name := range lockNames(d) {
			l, err := hostlock.Take("gpu/" + name)
			if errors.Is(err, hostlock.ErrHeld) {
				taken = append(taken, d.ID())
				break
			}
			if err != nil {
				return nil, fmt.Errorf("lock %s: %w", d, err)
			}
			h.locks = append(h.locks, l)
			if by := l.Other(); by != "" {
				if !beside {
					taken = append(taken, d.ID())
					break
				}
				if h.Foreign == nil {
					h.Foreign = map[string]string{}
				}
				h.Foreign[d.ID()] = by
			}
		}
	}
	return taken, nil
}

// lockNames are the UUID and the device node's number: an agent without a helper may know the latter only.
func lockNames(d Device) []string {
	if d.Instance != nil {
		return []string{d.Instance.UUID}
	}
	var names []string
	if d.UUID != "" {
		names = append(names, d.UUID)
	}
	if d.Minor >= 0 {
		names = append(names, "minor/"+strconv.Itoa(d.Minor))
	}
	return names
}

// queueTime bounds the wait for the others: an agent that is stopped in the middle must not stop all.
const queueTime = 5 * time.Second

// queue waits for its turn, at most as long as the limit.
func queue(ctx context.Context, limit time.Duration) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		l, err := hostlock.Take("gpu/choice")
		if err == nil {
			return func() { _ = l.Release() }
		}
		again := time.NewTimer(5 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return func() {}
		case <-again.C:
		}
	}
}

// IDs are the names of the held devices, in their order.
func (h *Held) IDs() []string {
	out := make([]string, 0, len(h.Devices))
	for _, d := range h.Devices {
		out = append(out, d.ID())
	}
	return slices.Clip(out)
}
