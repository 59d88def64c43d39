package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// away is a store that does not answer.
type away struct{ store.Store }

var errAway = errors.New("connection refused")

func (away) List(context.Context, string) ([]store.Info, error) { return nil, errAway }
func (away) Stat(context.Context, string) (store.Info, error)   { return store.Info{}, errAway }
func (away) Remove(context.Context, string) error               { return errAway }

// The machine has ended: no signal reaches persist by its state any more.
func TestCutShortEndsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(t.Context(), Config{
			Log: slog.New(slog.DiscardHandler), Loop: machine.NewAgent(),
			Process: Process{Plan: func() plan.Plan { return plan.Plan{} }},
		})
		m.owes("model", data.Leave{Store: away{}, Out: "/out", Folder: "worker-0", Run: "d1@1"})
		done := make(chan struct{})
		begun := time.Now()
		go func() { defer close(done); m.Finish() }()
		time.Sleep(time.Minute)
		select {
		case <-done:
			t.Fatal("it is not tried again")
		default:
		}
		m.CutShort()
		<-done
		if took := time.Since(begun); took > time.Minute+time.Second {
			t.Errorf("it went on for %s", took)
		}
		m.Close()
	})
}
