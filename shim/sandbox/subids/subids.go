package subids

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	idmap "github.com/moby/sys/user"
)

// BlockSize is how many ids a block has: those that an image's accounts may have.
const BlockSize = 1 << 16

// The ids that blocks are taken from where /etc/subuid and /etc/subgid give account none: from the first one that
// systemd leaves to nobody (1879048192) to the last whole block below its next range (2147352576), see
// systemd's "Users, Groups, UIDs and GIDs".
const (
	defaultFirst = 0x7000_0000
	defaultCount = 4094 * BlockSize
)

// account is the name in /etc/subuid and /etc/subgid whose ids the agents that are root take.
const account = "muster"

// Pool is where the blocks of a host are.
type Pool struct {
	UIDs, GIDs span
	From       string // what says so, for people
}

// span is a range of ids of the host.
type span struct{ First, Count int }

// Blocks is how many blocks a pool has.
func (p Pool) Blocks() int { return min(p.UIDs.Count, p.GIDs.Count) / BlockSize }

// block is the one of a number.
func (p Pool) block(number int) Block {
	return Block{UID: p.UIDs.First + number*BlockSize, GID: p.GIDs.First + number*BlockSize}
}

// Block is the first user id and the first group id of an app's ids on the host.
type Block struct{ UID, GID int }

// HostPool is the pool of this host.
func HostPool() (Pool, error) { return readPool("/etc/subuid", "/etc/subgid") }

func readPool(uids, gids string) (Pool, error) {
	p := Pool{
		UIDs: span{defaultFirst, defaultCount}, GIDs: span{defaultFirst, defaultCount},
		From: "muster's own range, since " + uids + " names no ids of " + account,
	}
	for path, to := range map[string]*span{uids: &p.UIDs, gids: &p.GIDs} {
		ranges, err := idmap.ParseSubIDFileFilter(path, func(s idmap.SubID) bool { return s.Name == account })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("read subordinate ids: %w", err)
		}
		if len(ranges) == 0 {
			continue
		}
		if ranges[0].Count < BlockSize {
			return p, fmt.Errorf("%s: %s has %d ids, want at least %d in its first line", path, account,
				ranges[0].Count, BlockSize)
		}
		*to = span{int(ranges[0].SubID), int(ranges[0].Count)}
		p.From = uids + " and " + gids
	}
	return p, nil
}

// ids are those of a host's accounts and groups.
type ids struct{ uids, gids []int }

// readAccounts reads the ids of the host's own files: accounts of a directory service are not in them, and have no
// reason to lie in a range for subordinate ids.
func readAccounts(passwd, group string) (ids, error) {
	var all ids
	users, err := idmap.ParsePasswdFile(passwd)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return all, fmt.Errorf("read accounts: %w", err)
	}
	for _, u := range users {
		all.uids, all.gids = append(all.uids, u.Uid), append(all.gids, u.Gid)
	}
	groups, err := idmap.ParseGroupFile(group)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return all, fmt.Errorf("read accounts: %w", err)
	}
	for _, g := range groups {
		all.gids = append(all.gids, g.Gid)
	}
	return all, nil
}

// in tells whether one of the ids lies in the block.
func (all ids) in(b Block) bool {
	within := func(first int) func(int) bool {
		return func(id int) bool { return id >= first && id < first+BlockSize }
	}
	return slices.ContainsFunc(all.uids, within(b.UID)) || slices.ContainsFunc(all.gids, within(b.GID))
}
