package main

import (
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifier tells the service manager that started this agent how it is (sd_notify(3)). Without one it says nothing.
type notifier struct {
	log   *slog.Logger
	ready sync.Once
	done  chan struct{}
	pings sync.WaitGroup
}

func newNotifier(log *slog.Logger) *notifier { return &notifier{log: log, done: make(chan struct{})} }

// started says that the gang was whole and the process runs; a later start is none of the manager's business. From here on
// the manager wants to hear from us, if it has asked to (WatchdogSec=).
func (n *notifier) started() {
	n.ready.Do(func() {
		n.say(daemon.SdNotifyReady)
		every, err := daemon.SdWatchdogEnabled(false)
		if err != nil {
			n.log.Warn("watchdog of the service manager", "err", err)
		}
		if every > 0 {
			n.pings.Go(func() { n.ping(every / 2) })
		}
	})
}

func (n *notifier) ping(every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			n.say(daemon.SdNotifyWatchdog)
		case <-n.done:
			return
		}
	}
}

// ends says that this agent is about to end with this code. One that ends well without having started anything, as when
// the run was over before, has been ready for the manager all the same: else its end would be a failure.
func (n *notifier) ends(code int) {
	if code == 0 {
		n.started()
	}
	n.say(daemon.SdNotifyStopping)
	close(n.done)
	n.pings.Wait()
}

func (n *notifier) say(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("notify the service manager", "state", state, "err", err)
	}
}
