package notify

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// What a service manager is told beside the words of package daemon (sd_notify(3)).
const (
	sdStatus = "STATUS="
	sdExtend = "EXTEND_TIMEOUT_USEC="
)

// A manager is told within lookPace of what has changed. Asked to wait, it waits for onePatience, and for as much again
// every halfPatience: an agent that is stuck is not waited for any longer.
const (
	lookPace     = time.Second
	onePatience  = 20 * time.Second
	halfPatience = onePatience / 2
)

// Message is what a service manager should know now.
type Message struct {
	Status string
	// Wait is how long its own limits, of a start or of a stop, should not count yet; 0: they may.
	Wait time.Duration
}

// Notifier tells the service manager that started this agent its state. Without a service manager it does nothing. Its
// watchdog messages follow from calls of see: an agent that hangs sends none.
type Notifier struct {
	log   *slog.Logger
	alive time.Duration // how long the manager waits for a sign of life; 0: it wants none
	see   atomic.Pointer[func() Message]

	ready, stopping atomic.Bool

	wake chan struct{} // something has changed
	over sync.Once
	done chan struct{}
	all  sync.WaitGroup
}

// New starts to report what see returns; the caller closes the notifier at the agent's end.
func New(log *slog.Logger, see func() Message) *Notifier {
	n := &Notifier{log: log, wake: make(chan struct{}, 1), done: make(chan struct{})}
	n.Look(see)
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return n
	}
	var err error
	if n.alive, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("watchdog of the service manager", "err", err)
	}
	n.all.Go(n.tell)
	return n
}

// Look replaces the function that describes the agent.
func (n *Notifier) Look(see func() Message) {
	n.see.Store(&see)
	n.Changed()
}

// Changed sends the current state now.
func (n *Notifier) Changed() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// tell goes on until close.
func (n *Notifier) tell() {
	pace := lookPace
	if n.alive > 0 {
		pace = min(pace, n.alive/2)
	}
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	said := telling{pace: pace, alive: n.alive}
	for {
		if text := said.next(time.Now(), (*n.see.Load())(), n.ready.Load()); text != "" {
			n.say(text)
		}
		select {
		case <-ticks.C:
		case <-n.wake:
		case <-n.done:
			return
		}
	}
}

// telling is what a manager has been told so far.
type telling struct {
	pace, alive time.Duration
	status      string
	extended    time.Time // when it was last asked to wait
	wait        time.Duration
	pinged      time.Time
}

// next is what it is to be told now; empty: nothing.
func (t *telling) next(now time.Time, o Message, ready bool) string {
	var lines []string
	if o.Status != t.status {
		t.status = o.Status
		lines = append(lines, sdStatus+o.Status)
	}
	wait := min(o.Wait, onePatience)
	if wait > 0 && (now.Sub(t.extended) >= halfPatience || t.wait <= 0) {
		t.extended = now
		lines = append(lines, fmt.Sprintf("%s%d", sdExtend, wait.Microseconds()))
	}
	t.wait = wait
	if t.alive > 0 && ready && now.Sub(t.pinged) >= t.alive/2-t.pace {
		t.pinged = now
		lines = append(lines, daemon.SdNotifyWatchdog)
	}
	return strings.Join(lines, "\n")
}

// Started reports that the gang was complete and the process runs; later starts are not reported. The manager's
// watchdog (WatchdogSec=) is served from here on.
func (n *Notifier) Started() {
	if !n.ready.Swap(true) {
		n.say(daemon.SdNotifyReady)
		n.Changed()
	}
}

// Ends reports that this agent is about to end with this code. An agent that ends with 0 before it started anything,
// because the run was over, reports readiness first: else its end would count as a failure.
func (n *Notifier) Ends(code int) {
	if code == 0 {
		n.Started()
	}
	n.stopping.Store(true)
	n.say(daemon.SdNotifyStopping)
	n.Changed()
}

// Close sends the last status, unless it is empty, and nothing after it.
func (n *Notifier) Close(status string) {
	n.over.Do(func() {
		close(n.done)
		n.all.Wait()
		if status != "" {
			n.say(sdStatus + status)
		}
	})
}

// IsReady tells whether the manager knows that the service is ready.
func (n *Notifier) IsReady() bool { return n.ready.Load() }

// IsStopping tells whether the manager knows that the service ends.
func (n *Notifier) IsStopping() bool { return n.stopping.Load() }

func (n *Notifier) say(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("notify the service manager", "state", state, "err", err)
	}
}
