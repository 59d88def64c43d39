package subids

import (
	"slices"
	"syscall"
)

// Range maps Size ids of a user namespace, from Inside on, to ids of the host, from Outside on.
type Range struct{ Inside, Outside, Size int }

// Map says which ids of the host the ids in a user namespace are.
type Map struct{ UIDs, GIDs []Range }

// New is the map of a block in which the users and groups of the host that are named have their own ids; everybody
// else inside, root first, has subordinate ones.
func New(b Block, uids, gids []int) *Map {
	return &Map{UIDs: ranges(b.UID, uids), GIDs: ranges(b.GID, gids)}
}

// ranges maps own ids to themselves, and 0 to BlockSize but these to those of the block.
func ranges(first int, own []int) []Range {
	own = slices.Compact(slices.Sorted(slices.Values(own)))
	own = slices.DeleteFunc(own, func(id int) bool { return id <= 0 })
	var all []Range
	next := 0
	for _, id := range own {
		if next < min(id, BlockSize) {
			all = append(all, Range{next, first + next, min(id, BlockSize) - next})
		}
		all = append(all, Range{id, id, 1})
		next = id + 1
	}
	if next < BlockSize {
		all = append(all, Range{next, first + next, BlockSize - next})
	}
	return all
}

// UID is the host's id of a user inside; false: none.
func (m *Map) UID(inside int) (int, bool) { return outside(m.UIDs, inside) }

// GID is the host's id of a group inside; false: none.
func (m *Map) GID(inside int) (int, bool) { return outside(m.GIDs, inside) }

func outside(all []Range, inside int) (int, bool) {
	for _, r := range all {
		if inside >= r.Inside && inside < r.Inside+r.Size {
			return r.Outside + inside - r.Inside, true
		}
	}
	return 0, false
}

// HasUser tells whether a user of the host has an id inside.
func (m *Map) HasUser(outside int) bool {
	return slices.ContainsFunc(m.UIDs, func(r Range) bool { return outside >= r.Outside && outside < r.Outside+r.Size })
}

// ProcUIDs are the users in the form of package syscall.
func (m *Map) ProcUIDs() []syscall.SysProcIDMap { return procMap(m.UIDs) }

// ProcGIDs are the groups in the form of package syscall.
func (m *Map) ProcGIDs() []syscall.SysProcIDMap { return procMap(m.GIDs) }

func procMap(ranges []Range) []syscall.SysProcIDMap {
	var all []syscall.SysProcIDMap
	for _, r := range ranges {
		all = append(all, syscall.SysProcIDMap{ContainerID: r.Inside, HostID: r.Outside, Size: r.Size})
	}
	return all
}
