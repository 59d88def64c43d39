package consul

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/registry"
)

func packedOf(t *testing.T, n int) (registry.RosterRef, []byte) {
	t.Helper()
	r := registry.Roster{Version: 1, Run: "1", Gen: 1}
	for i := range n {
		r.Rows = append(r.Rows, registry.Row{
			Instance: registry.Instance{Component: "worker", Index: i}, Rank: i, Peer: string(rune('a' + i%26)),
		})
	}
	p, err := registry.Pack(r)
	if err != nil {
		t.Fatal(err)
	}
	ref := p.Ref
	ref.Seeds = r.Seeds()
	return ref, bytes.Join(p.Chunks, nil)
}

// TestHeldQuestion: a question for a roster is answered when the roster comes, and with "not yet" after a while.
func TestHeldQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref, packed := packedOf(t, 300)
		s := &Membership{}
		began := time.Now()
		if _, _, err := s.GiveRoster(t.Context(), ref.ID, 16); !errors.Is(err, registry.ErrNotYet) {
			t.Errorf("without a roster: %v", err)
		}
		if held := time.Since(began); held != holdRoster {
			t.Errorf("held for %s", held)
		}
		answers := make(chan string)
		go func() {
			got, next, err := s.GiveRoster(t.Context(), ref.ID, 16)
			if err != nil || !bytes.Equal(got, packed) {
				next = "wrong"
			}
			answers <- next
		}()
		go func() {
			_, next, _ := s.GiveRoster(t.Context(), ref.ID, 290)
			answers <- next
		}()
		synctest.Wait()
		s.roster.keep(registry.RosterRef{ID: "0-older"}, []byte("another"), true)
		synctest.Wait()
		s.roster.keep(ref, packed, true)
		got := map[string]bool{<-answers: true, <-answers: true}
		parent, _ := registry.Parent(290)
		if want := string(rune('a' + parent%26)); !got[""] || !got[want] {
			t.Errorf("answers %v, want the roster and the address %q of the parent", got, want)
		}
	})
}

// TestPatienceWithPeers: a member whose peer has no roster yet asks again, and gives up after the time of its level.
func TestPatienceWithPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref, packed := packedOf(t, 5000)
		for _, rank := range []int{16, 300, 4999} {
			asked, enough := 0, 1<<30
			r := readerOf(rank, func(ctx context.Context, peer, _, id string, who int) ([]byte, string, error) {
				if asked++; peer == "" || id != ref.ID || who != rank {
					t.Errorf("asked %q for %s of rank %d", peer, id, who)
				}
				if asked > enough {
					return packed, "", nil
				}
				return nil, "", errors.Join(registry.ErrNotYet, pause(ctx, holdRoster))
			})
			began, patience := time.Now(), time.Duration(registry.Level(rank))*(levelPatience+fallBackSpread(ref, 5000))
			_, err := r.fromPeers(t.Context(), ref)
			if took := time.Since(began); !errors.Is(err, registry.ErrNotYet) || took < patience || took > patience+time.Second {
				t.Errorf("rank %d gave up after %s with %v, want %s", rank, took, err, patience)
			}
			if most := 1 + int(patience/holdRoster); asked > most+1 {
				t.Errorf("rank %d asked %d times", rank, asked)
			}
			asked, enough = 0, 2
			if got, err := r.fromPeers(t.Context(), ref); err != nil || !bytes.Equal(got, packed) {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
		if _, err := readerOf(300, nil).fromPeers(t.Context(), ref); !errors.Is(err, errNoPeers) {
			t.Errorf("without a way to ask: %v", err)
		}
	})
}

// readerOf reads rosters for a rank of 5000, and fails to read them from the registry.
func readerOf(rank int, ask askRoster) rosterReader {
	return rosterReader{
		ask: ask, rank: rank, world: 5000, log: slog.New(slog.DiscardHandler),
		fromRegistry: func(context.Context) ([]byte, error) { return nil, errors.New("read from the registry") },
	}
}

// errHeaders is what net/http returns when an answer does not begin in time.
type errHeaders struct{}

func (errHeaders) Error() string { return "timeout awaiting response headers" }
func (errHeaders) Timeout() bool { return true }

// TestSlowPeers: on a network where every answer comes late, members wait for their peers. None reads the roster from
// the registry.
func TestSlowPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref, packed := packedOf(t, 5000)
		began := time.Now()
		slowly := func(ctx context.Context, peer, _, _ string, who int) ([]byte, string, error) {
			switch {
			case time.Since(began) > slowPatience*9/10:
				return packed, "", nil
			case peer == "parent" || registry.Level(who) == 1:
				return nil, "", errors.Join(pause(ctx, 6*time.Second), errHeaders{})
			}
			return nil, "parent", nil
		}
		var all sync.WaitGroup
		for rank := registry.FanOut; rank < 5000; rank += 7 {
			all.Go(func() {
				if got, err := readerOf(rank, slowly).read(t.Context(), ref); err != nil || !bytes.Equal(got, packed) {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		all.Wait()
	})
}

// TestDeadParent: a member whose parent does not answer gets the roster from the parent's own source.
func TestDeadParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref, packed := packedOf(t, 5000)
		refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		const rank = 4999
		parent, _ := registry.Parent(rank)
		r := readerOf(rank, func(_ context.Context, peer, _, _ string, who int) ([]byte, string, error) {
			switch {
			case peer == "dead":
				return nil, "", refused
			case who == rank:
				return nil, "dead", nil
			case who == parent:
				return packed, "", nil
			}
			return nil, "", fmt.Errorf("asked in the place of rank %d", who)
		})
		began := time.Now()
		if got, err := r.read(t.Context(), ref); err != nil || !bytes.Equal(got, packed) {
			t.Error(err)
		}
		if took := time.Since(began); took > fallBack {
			t.Errorf("took %s", took)
		}
		began = time.Now()
		busy := func(ctx context.Context, _, _, _ string, _ int) ([]byte, string, error) {
			if time.Since(began) < connectPatience*9/10 {
				return nil, "", errors.Join(pause(ctx, 2500*time.Millisecond), &net.OpError{Op: "dial", Err: errHeaders{}})
			}
			return packed, "", nil
		}
		if got, err := readerOf(rank, busy).read(t.Context(), ref); err != nil || !bytes.Equal(got, packed) {
			t.Errorf("hosts that are busy for a while: %v", err)
		}
		dead := func(context.Context, string, string, string, int) ([]byte, string, error) { return nil, "", refused }
		if _, err := readerOf(300, dead).read(t.Context(), ref); err == nil || err.Error() != "read from the registry" {
			t.Errorf("without any peer: %v", err)
		}
	})
}

// TestNobodyReachesPeers: where no member reaches any peer, the registry gives no more of the roster in a second than
// it can.
func TestNobodyReachesPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		ref, packed := packedOf(t, n)
		ref.Bytes *= 20 // rows as long as real ones
		refused := func(context.Context, string, string, string, int) ([]byte, string, error) {
			return nil, "", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		var mu sync.Mutex
		at := map[int]int{} // readings in each second
		began := time.Now()
		var all sync.WaitGroup
		for rank := registry.FanOut; rank < n; rank++ {
			r := readerOf(rank, refused)
			r.fromRegistry = func(context.Context) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				at[int(time.Since(began)/time.Second)]++
				return packed, nil
			}
			all.Go(func() {
				if _, err := r.read(t.Context(), ref); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		all.Wait()
		// Some 53 a second, by chance: twice as many would be seven standard deviations away.
		if most := slices.Max(slices.Collect(maps.Values(at))) * ref.Bytes / packs; most > registryRate*2 {
			t.Errorf("%d MiB in a second, want about %d: %v", most>>20, registryRate>>20, at)
		}
	})
}
