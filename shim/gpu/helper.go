package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Errors of Open and of the requests.
var (
	// ErrNoHelper says that muster-gpu is not there or does not start on this system. Nodes still finds the devices.
	ErrNoHelper = errors.New("no muster-gpu")
	// ErrNoDriver says that muster-gpu found no NVIDIA driver that works.
	ErrNoDriver = errors.New("no NVIDIA driver")
	// ErrHung says that the helper did not answer in time; it was killed and is restarted.
	ErrHung = errors.New("muster-gpu hangs")
	// ErrEnded says that the helper ended before it answered; it is restarted.
	ErrEnded = errors.New("muster-gpu ended")
	// errStuck says that several helpers in a row could not even be killed: the driver holds them, and no more are
	// started.
	errStuck = errors.New("muster-gpu cannot be killed")
	// errClosed says that the Helper was closed.
	errClosed = errors.New("closed")
)

// settings are the times of a Helper; tests have shorter ones.
type settings struct {
	timeout  time.Duration // for each request
	pause    time.Duration // before the first restart; doubled for each that does not last
	maxPause time.Duration
	stable   time.Duration // a helper that lived as long resets the pauses
	patience time.Duration // for the end of a helper that was asked or killed
	root     string        // of /sys
}

var usual = settings{
	timeout: 10 * time.Second, pause: 100 * time.Millisecond, maxPause: 30 * time.Second, stable: time.Minute,
	patience: 3 * time.Second, root: "/",
}

// mostStuck is how many helpers may be left in the kernel's hands.
const mostStuck = 3

// Helper asks a muster-gpu that is restarted when it hangs or dies. Its methods may be called from any goroutine.
type Helper struct {
	path     string
	log      *slog.Logger
	settings settings
	hello    Hello

	life context.Context // until Close: what the supervisor and the subscriptions ask belongs to no caller
	end  context.CancelFunc
	done chan struct{} // the supervisor has ended
	work sync.WaitGroup

	mu       sync.Mutex
	now      present
	seen     lastSeen
	watchers map[chan Event]struct{}
	dropped  bool // an event was lost to a full watcher
}

// present is the helper process of this moment.
type present struct {
	conn    *conn         // nil: none right now
	fault   error         // why there is none
	changed chan struct{} // closed when another takes its place
}

// Open starts the helper at path and waits for its hello, at most 10 s. The error is ErrNoHelper or ErrNoDriver where
// that is the reason. The helper stays in the caller's session, in a process group of its own, and ends with its stdin.
func Open(ctx context.Context, path string, log *slog.Logger) (*Helper, error) {
	return open(ctx, path, log, usual)
}

func open(ctx context.Context, path string, log *slog.Logger, s settings) (*Helper, error) {
	h := &Helper{
		path: path, log: log, settings: s, done: make(chan struct{}),
		now: present{changed: make(chan struct{})}, watchers: map[chan Event]struct{}{},
	}
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	c, err := h.start(ctx)
	if err != nil {
		h.end()
		return nil, fmt.Errorf("open GPU helper: %w", err)
	}
	h.hello = *c.hello
	h.set(c, nil)
	h.work.Go(func() { h.supervise(c) })
	return h, nil
}

// Hello is what the first helper reported of itself and the driver.
func (h *Helper) Hello() Hello { return h.hello }

// Inventory is all devices with their health and processes as of now.
func (h *Helper) Inventory(ctx context.Context) (Inventory, error) {
	reply, err := h.call(ctx, OpInventory)
	if err != nil {
		return Inventory{}, err
	}
	if reply.Inventory == nil {
		return Inventory{}, fmt.Errorf("ask muster-gpu for inventory: an answer without one")
	}
	inv := *reply.Inventory
	inv.Source = "muster-gpu"
	health, err := h.call(ctx, OpHealth)
	if err != nil {
		return Inventory{}, err
	}
	h.remember(inv, health.Vitals)
	processes, err := h.Processes(ctx)
	if err != nil {
		return Inventory{}, err
	}
	for i := range inv.Devices {
		d := &inv.Devices[i]
		d.Processes = processes[d.UUID]
		d.Closed = isClosed(h.settings.root, d.Minor)
		for _, v := range health.Vitals {
			if v.Index == d.Index {
				d.Health = judge(d.ID(), v)
			}
		}
		node, cpus := pciPlace(h.settings.root, d.PCI)
		if d.NUMA < 0 {
			d.NUMA = node
		}
		if d.CPUs == "" {
			d.CPUs = cpus
		}
	}
	return inv, nil
}

// Processes are those that use the devices, by the devices' UUID.
func (h *Helper) Processes(ctx context.Context) (map[string][]Process, error) {
	reply, err := h.call(ctx, OpProcesses)
	if err != nil {
		return nil, err
	}
	return reply.Processes, nil
}

// Loads are how busy the devices are, by their ID.
func (h *Helper) Loads(ctx context.Context) (map[string]Load, error) {
	reply, err := h.call(ctx, OpLoad)
	if err != nil {
		return nil, err
	}
	all := map[string]Load{}
	for _, l := range reply.Loads {
		all[l.ID] = l
	}
	return all, nil
}

// watchBuffer is how many events a slow watcher may be behind; what comes then is lost, with a warning.
const watchBuffer = 1024

// Watch tells what happens to the devices from now on, across restarts of the helper, of which it tells too. The
// channel is closed when ctx ends or the Helper is closed.
func (h *Helper) Watch(ctx context.Context) <-chan Event {
	events := make(chan Event, watchBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.now.fault, errClosed) {
		close(events)
		return events
	}
	h.watchers[events] = struct{}{}
	c := h.now.conn
	h.work.Go(func() { // under the lock: Close waits only for what began before it
		if c != nil {
			h.subscribe(c)
		}
		select {
		case <-ctx.Done():
		case <-h.done:
		}
		h.mu.Lock()
		delete(h.watchers, events)
		close(events)
		h.mu.Unlock()
	})
	return events
}

// Close ends the helper and waits for it.
func (h *Helper) Close() error {
	h.end()
	<-h.done // from now on no watcher is taken
	h.work.Wait()
	return nil
}

// call asks the helper of this moment, or the next one if there is none and it comes in time.
func (h *Helper) call(ctx context.Context, op Op) (Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.settings.timeout, errTimeout)
	defer cancel()
	c, err := h.current(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("ask muster-gpu for %s: %w", op, err)
	}
	reply, err := c.ask(ctx, op)
	if errors.Is(err, errTimeout) {
		err = fmt.Errorf("%w: no answer within %s; it was killed and is restarted", ErrHung, h.settings.timeout)
		c.kill(err)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("ask muster-gpu for %s: %w", op, err)
	}
	return reply, nil
}

var errTimeout = errors.New("no answer in time")

func (h *Helper) current(ctx context.Context) (*conn, error) {
	for {
		h.mu.Lock()
		now := h.now
		h.mu.Unlock()
		switch {
		case now.conn != nil && !now.conn.doomed():
			return now.conn, nil
		case errors.Is(now.fault, errClosed), errors.Is(now.fault, errStuck):
			return nil, now.fault
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("none is running: %w", errors.Join(context.Cause(ctx), now.fault))
		}
	}
}

func (h *Helper) set(c *conn, fault error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.now.changed)
	h.now = present{conn: c, fault: fault, changed: make(chan struct{})}
}

// supervise owns the helpers, one after the other, until Close.
func (h *Helper) supervise(c *conn) {
	defer close(h.done)
	pause, stuck := h.settings.pause, 0
	for {
		began := time.Now()
		select {
		case <-h.life.Done():
			h.set(nil, errClosed)
			c.stop()
			return
		case <-c.ended:
		}
		fault := c.fault()
		h.set(nil, fault)
		h.log.Warn("gpu helper lost", "err", fault)
		h.emit(Event{Kind: EventHelper, Index: -1, Text: fault.Error()})
		if c.abandoned {
			stuck++
		}
		if time.Since(began) >= h.settings.stable {
			pause = h.settings.pause
		}
		if stuck >= mostStuck {
			h.set(nil, fmt.Errorf("%w: %d of them; look for processes in state D and at the kernel's log", errStuck,
				stuck))
			<-h.life.Done()
			h.set(nil, errClosed)
			return
		}
		if c = h.restart(&pause); c == nil {
			h.set(nil, errClosed)
			return
		}
		h.set(c, nil)
		h.resubscribe(c)
	}
}

// restart tries until a helper runs; nil: the Helper is closed.
func (h *Helper) restart(pause *time.Duration) *conn {
	for {
		timer := time.NewTimer(*pause)
		select {
		case <-h.life.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		*pause = min(2**pause, h.settings.maxPause)
		c, err := h.start(h.life)
		if err == nil {
			return c
		}
		if h.life.Err() != nil {
			return nil
		}
		h.log.Warn("gpu helper does not start", "err", err, "next", *pause)
		h.set(nil, err)
	}
}

// start runs a helper and hears its hello.
func (h *Helper) start(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.settings.timeout, errTimeout)
	defer cancel()
	c, err := dial(h.path, h.settings.patience, h.emit)
	if err != nil {
		return nil, err
	}
	reply, err := c.ask(ctx, OpHello)
	var p *Problem
	switch {
	case errors.As(err, &p) && p.Code == CodeNoDriver:
		err = fmt.Errorf("%w: %s", ErrNoDriver, p.Text)
	case errors.Is(err, errTimeout):
		err = fmt.Errorf("%w: no hello within %s", ErrHung, h.settings.timeout)
	case err != nil:
		// as it is
	case reply.Hello == nil:
		err = fmt.Errorf("%s: no hello in its answer", h.path)
	case reply.Hello.Protocol != Protocol:
		err = fmt.Errorf("%s speaks protocol %d, want %d: install the muster-gpu of this muster", h.path,
			reply.Hello.Protocol, Protocol)
	}
	if err != nil {
		c.kill(err)
		<-c.ended
		return nil, err
	}
	c.hello = reply.Hello
	return c, nil
}

// resubscribe continues the watching with a new helper.
func (h *Helper) resubscribe(c *conn) {
	h.mu.Lock()
	watched := len(h.watchers) > 0
	h.mu.Unlock()
	if watched {
		h.work.Go(func() { h.subscribe(c) })
	}
}

func (h *Helper) subscribe(c *conn) {
	ctx, cancel := context.WithTimeoutCause(h.life, h.settings.timeout, errTimeout)
	defer cancel()
	_, err := c.ask(ctx, OpEvents)
	if err == nil {
		err = h.catchUp(ctx, c)
	}
	switch {
	case errors.Is(err, errTimeout):
		c.kill(fmt.Errorf("%w: no answer to events or health within %s", ErrHung, h.settings.timeout))
	case err != nil && !errors.Is(err, ErrEnded) && h.life.Err() == nil:
		h.log.Warn("gpu events not available", "err", err)
	}
}

// emit hands an event to all watchers.
func (h *Helper) emit(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		select {
		case w <- e:
		default:
			if !h.dropped {
				h.dropped = true
				h.log.Warn("gpu events lost", "cause", "the watcher is too slow", "kind", e.Kind)
			}
		}
	}
}
