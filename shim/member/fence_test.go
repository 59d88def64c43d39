package member

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// A member's word on its silence counts as soon as it is in touch again, and not while it stops or has stopped for the
// fence.
func TestGivesIn(t *testing.T) {
	for name, tt := range map[string]struct {
		phase  machine.Phase
		reason machine.StopReason
		cutOff bool
		want   bool
	}{
		"it runs":                          {machine.Running, "", false, false},
		"the fence has fallen":             {machine.Running, "", true, true},
		"it stops for it":                  {machine.Stopping, machine.ForFence, true, true},
		"in touch before the process ends": {machine.Stopping, machine.ForFence, false, true},
		"fenced":                           {machine.Fenced, machine.ForFence, true, true},
		"in touch, and it reports":         {machine.Finishing, machine.ForFence, false, false},
		"in touch, and it waits its turn":  {machine.Waiting, machine.ForFence, false, false},
		"in touch, before its next start":  {machine.Backoff, machine.ForFence, false, false},
		"it stops for another generation":  {machine.Stopping, machine.ForRebuild, false, false},
	} {
		s := machine.State{Phase: tt.phase}
		s.Reason, s.CutOff = tt.reason, tt.cutOff
		if got := givesIn(s); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// A roster that the agent has read is whom it asks, though nothing has been heard since: it may have come by in an
// outage.
func TestPanelOfARosterThatIsThere(t *testing.T) {
	facts := conductor.Facts{Components: []conductor.ComponentFacts{{Name: "worker", Count: 3, Waited: true}}}
	d := registry.Directive{Run: "1", Gen: 2, Act: registry.ActRun, Roster: registry.RosterRef{ID: "2-abc"}}
	r := registry.Roster{Run: "1", Gen: 2}
	for i := range 3 {
		r.Rows = append(r.Rows, registry.Row{Instance: registry.Instance{Component: "worker", Index: i}, Rank: i})
	}
	old := r
	old.Gen = 1
	held, id := old, "1-abc"
	f := &Fence{membership: &consul.Membership{}, facts: facts}
	f.cfg.roster = func() (registry.Roster, string) { return held, id }
	if known, newer := f.knows(d); known || newer || len(f.panel.Rows()) != 0 {
		t.Error("the last generation's roster is taken for this one's")
	}
	held, id = r, "2-abc"
	if known, _ := f.knows(d); !known || len(f.panel.Rows()) == 0 {
		t.Error("the roster that is there is not taken")
	}
	d.Roster.ID = "2-def" // a flex has written it again
	if known, newer := f.knows(d); known || !newer {
		t.Errorf("known %t, newer %t of a roster that was written again for this generation", known, newer)
	}
}

// peerOf is a member whose agent answers at a socket after what is done before.
func peerOf(t *testing.T, index int, before func(context.Context)) registry.Row {
	t.Helper()
	row := registry.Row{Instance: registry.Instance{Component: "worker", Index: index}, Rank: index}
	row.API = status.Dir(t.TempDir()).Socket("d1", row.Instance.String())
	if err := os.MkdirAll(filepath.Dir(row.API), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", row.API)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r.Context())
		_ = json.NewEncoder(w).Encode(status.Silence{Instance: row.Instance.String(), Gen: 1, Silence: 60}) // the asker may be gone
	})}
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		work.Wait()
	})
	return row
}

// What two of three show holds while the third does not answer, and who asks is told as soon as nobody is asked any
// more.
func TestPeerThatDoesNotAnswerHoldsUpNobody(t *testing.T) {
	facts := conductor.Facts{Components: []conductor.ComponentFacts{{Name: "worker", Count: 4, Waited: true}}}
	f := &Fence{membership: &consul.Membership{}, facts: facts, due: make(chan struct{}, 1)}
	f.cfg = fenceConfig{loop: machine.NewAgent(), times: registry.DefaultTimes(), log: slog.New(slog.DiscardHandler), dial: dialer{app: "d1"}.dial}
	at := func(context.Context) {}
	deaf := func(ctx context.Context) { <-ctx.Done() }
	rows := []registry.Row{peerOf(t, 1, at), peerOf(t, 2, at), peerOf(t, 3, deaf)}
	f.panel.Panel = conductor.NewPanel(facts, registry.Roster{Gen: 1, Rows: rows}, registry.Instance{Component: "worker"})
	for range 10 { // on a busy machine the answers may be too late
		ctx, cancel := context.WithCancel(t.Context())
		f.round.busy = true
		var work sync.WaitGroup
		work.Go(func() { f.ask(ctx, rows) })
		for {
			f.mu.Lock()
			shown, asking := f.contact.Evidence != 0, f.round.busy
			f.mu.Unlock()
			if shown || !asking {
				cancel()
				work.Wait()
				<-f.due
				if shown && asking {
					return
				}
				f.contact.Evidence = 0
				break
			}
			<-time.After(time.Millisecond)
		}
	}
	t.Error("what the others show does not count before the last has had its time")
}

// stuck is a guard that does not read.
type stuck struct{ asked, answer chan struct{} }

func (s stuck) Feed(time.Duration) error {
	s.asked <- struct{}{}
	<-s.answer
	return nil
}

// While a guard does not read, peers are answered and ends are explained all the same.
func TestStuckGuardHoldsUpNobody(t *testing.T) {
	guard := stuck{make(chan struct{}), make(chan struct{})}
	f := &Fence{membership: &consul.Membership{}, cfg: fenceConfig{loop: machine.NewAgent(), times: registry.DefaultTimes()}}
	f.cfg.times.LostMass = 1 << 62 // no renewal was ever answered
	f.timer.guard = guard
	var work sync.WaitGroup
	work.Go(f.Disarm)
	<-guard.asked
	f.TimerFired()
	if f.Answer(); !f.EndedProcess() {
		t.Error("the guard's word is not there")
	}
	close(guard.answer)
	work.Wait()
	if f.timer.guard != nil {
		t.Error("the guard is still fed")
	}
}
