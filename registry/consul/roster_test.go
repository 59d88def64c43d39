package consul

import (
	"bytes"
	"context"
	"errors"
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
			s := &Membership{}
			s.roster.ask = func(ctx context.Context, peer, _, id string, who int) ([]byte, string, error) {
				if asked++; peer == "" || id != ref.ID || who != rank {
					t.Errorf("asked %q for %s of rank %d", peer, id, who)
				}
				if asked > enough {
					return packed, "", nil
				}
				return nil, "", errors.Join(registry.ErrNotYet, pause(ctx, holdRoster))
			}
			began, patience := time.Now(), time.Duration(registry.Level(rank))*levelPatience
			_, err := s.fromPeers(t.Context(), ref, rank)
			if took := time.Since(began); !errors.Is(err, registry.ErrNotYet) || took < patience || took > patience+time.Second {
				t.Errorf("rank %d gave up after %s with %v, want %s", rank, took, err, patience)
			}
			if most := 1 + int(patience/holdRoster); asked > most+1 {
				t.Errorf("rank %d asked %d times", rank, asked)
			}
			asked, enough = 0, 2
			if got, err := s.fromPeers(t.Context(), ref, rank); err != nil || !bytes.Equal(got, packed) {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
		if _, err := (&Membership{}).fromPeers(t.Context(), ref, 300); !errors.Is(err, errNoPeers) {
			t.Errorf("without a way to ask: %v", err)
		}
	})
}
