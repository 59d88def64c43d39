package checkpoint

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// A store that takes connections and never says a word holds up the end of a process for a moment, not for as long as
// it is away.
func TestEndWithASilentStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	var held []net.Conn
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
			asked.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-over
		for _, c := range held {
			_ = c.Close()
		}
	})
	open := func(ctx context.Context, _ plan.Plan, url string, _ bool) (store.Store, string, error) {
		return schemes.All(hdfs.Config{}).Open(ctx, url)
	}
	m := New(t.Context(), Config{Log: slog.New(slog.DiscardHandler), Open: open})
	m.plan = plan.Plan{Checkpoint: plan.Checkpoint{Dir: "hdfs://" + l.Addr().String() + "/saves", Pattern: "step-*"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.SeeLast(nil)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the end of the process waits for the store")
	}
	if asked.Load() == 0 {
		t.Error("the store was not asked")
	}
}

// Who waits for the last copy is told at once that it failed for good, and waits no more for the tries that follow.
func TestNobodyWaitsForWhatAPersonMustMend(t *testing.T) {
	k := &uploader{wake: make(chan struct{}, 1)}
	k.offer(format.Checkpoint{Step: 1, Files: []format.File{{Name: "a"}}}, location{}, machine.State{})
	one, _ := k.take()
	told := make(chan error, 1)
	<-k.wake // of the offer
	go func() { told <- k.wait(t.Context()) }()
	refused := errors.New("no room")
	<-k.wake // of who waits, that it be tried now
	k.putBack(*one, refused)
	if err := <-told; !errors.Is(err, refused) {
		t.Errorf("got %v, want why nothing is stored", err)
	}
	if again, _ := k.take(); again == nil || again.Step != 1 {
		t.Error("it is not tried again")
	}
}

// A process may write what it likes where its folder says which generation went on with it: that is believed to the
// letter.
func TestMarksThatProcessesWrite(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	m := &Manager{cfg: Config{AppID: "app", Registry: func() Registry { return &consul.Membership{} }}}
	for text, want := range map[string]int{"": 0, " \n": 0, "7": 0, "word": 0, "a b -1\n": 0, m.markText(7): 7, m.markText(7) + "\n": 0} {
		if err := root.WriteFile(markName, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := m.markedGeneration(mine(root)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// What was refused since its generation is over is copied once more if the next goes on from it; what the registry has,
// or what is another's by now, is not.
func TestTooLateIsCopiedAgain(t *testing.T) {
	c := format.Checkpoint{Step: 30, Files: []format.File{{Name: "a"}}}
	for _, tc := range []struct {
		err   error
		again bool
	}{{nil, false}, {registry.ErrOvertaken, true}, {registry.ErrSuperseded, false}} {
		k := &uploader{wake: make(chan struct{}, 1)}
		k.offer(c, location{}, inGeneration(1))
		k.offer(c, location{}, inGeneration(2)) // it waited: it is saved under the generation that goes on from it
		one, _ := k.take()
		if one == nil || one.gen != 2 {
			t.Fatalf("got %+v, want it of generation 2", one)
		}
		k.finish(uploaded{gen: 2, stamp: c.Stamp(), step: registry.CheckpointStep{Step: c.Step}}, tc.err)
		k.offer(c, location{}, inGeneration(3))
		if again, _ := k.take(); (again != nil) != tc.again {
			t.Errorf("%v: got %+v", tc.err, again)
		}
	}
}

// inGeneration is the state of an agent whose gang is in a generation.
func inGeneration(gen int) (s machine.State) {
	s.Gen = gen
	return s
}

// TestNobodyWaitsBehindALookThatHangs: a start that is called off ends, though another look waits for a store that does
// not answer.
func TestNobodyWaitsBehindALookThatHangs(t *testing.T) {
	hang := make(chan struct{})
	m := New(t.Context(), Config{Open: func(context.Context, plan.Plan, string, bool) (store.Store, string, error) {
		<-hang // whatever its context
		return nil, "", errors.New("no answer")
	}})
	m.plan.Checkpoint.Dir = "hdfs://nobody/checkpoint"
	var watch sync.WaitGroup
	watch.Go(func() { _, _, _ = m.look(t.Context(), false) })
	defer watch.Wait()
	defer close(hang)
	for len(m.looking) == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.look(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
