package registry

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A roster of thousands of members is too large for one registry to give to each of them at the moment of the release:
// the bytes grow with the square of the gang. In a large gang only the first ranks, the seeds, read it from the
// registry. Every other rank reads it from a peer: the ranks form a tree in which each serves FanOut others. A seed has
// all addresses and tells a rank the address of its parent.

const (
	// FanOut is how many ranks are seeds, and how many each rank serves.
	FanOut = 16
	// fanOutFrom is the smallest roster, in rows, that is read from peers. Below it the detour costs more time than it
	// saves the registry bytes.
	fanOutFrom = FanOut * FanOut
)

// Parent is the rank that gives the roster to this one; ok is false for a seed, which reads it from the registry.
func Parent(rank int) (parent int, ok bool) { return rank/FanOut - 1, rank >= FanOut }

// Level is how many peers the roster passes on its way to a rank; 0 for a seed.
func Level(rank int) int {
	level := 0
	for {
		parent, ok := Parent(rank)
		if !ok {
			return level
		}
		rank, level = parent, level+1
	}
}

// Serves tells whether a rank has ranks below it in a gang of that many, or is a seed.
func Serves(rank, world int) bool { return rank < FanOut || (rank+1)*FanOut < world }

// Seeds are the peer addresses of the seeds, separated by spaces. It is empty for a small roster, and where no seed
// answers other hosts: then everybody reads the roster from the registry.
func (r Roster) Seeds() string {
	if len(r.Rows) < fanOutFrom {
		return ""
	}
	var seeds []string
	for _, row := range r.Rows {
		if row.Rank < FanOut && row.Peer != "" && !row.Done {
			seeds = append(seeds, row.Peer)
		}
	}
	return strings.Join(seeds, " ")
}

// Seed is the peer address of the seed that a rank asks at a try, the first being 0; "" for none.
func (ref RosterRef) Seed(rank, try int) string {
	seeds := strings.Fields(ref.Seeds)
	if len(seeds) == 0 || rank < FanOut {
		return ""
	}
	return seeds[(rank+try)%len(seeds)]
}

// Sources are the peer addresses of the ranks that give a roster to others, by rank. "": that rank answers no other
// host, or has ended.
type Sources []string

// Sources reads them from a packed roster, and nothing else: decoding all of thousands of rows takes more than twice as
// long, while the whole tree waits. The roster was verified.
func (ref RosterRef) Sources(packed []byte) (Sources, error) {
	text, err := ref.text(packed)
	if err != nil {
		return nil, err
	}
	var roster struct {
		Rows []struct {
			Rank int    `json:"rank"`
			Peer string `json:"peer"`
			Done bool   `json:"done"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &roster); err != nil {
		return nil, fmt.Errorf("decode roster %s: %w", ref.ID, err)
	}
	all := make(Sources, len(roster.Rows)/FanOut+1)
	for _, row := range roster.Rows {
		if row.Rank >= 0 && row.Rank < len(all) && !row.Done {
			all[row.Rank] = row.Peer
		}
	}
	return all, nil
}

// Of is the peer address of the member that gives the roster to a rank; "" where that is the asked seed itself, for the
// ranks below the seeds, and for those whose parent answers no other host.
func (s Sources) Of(rank int) string {
	parent, ok := Parent(rank)
	if !ok || parent < FanOut || parent >= len(s) {
		return ""
	}
	return s[parent]
}
