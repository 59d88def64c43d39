package embedded

import (
	"bytes"
	"strings"
	"time"
)

// firstIndex is the index of a store before its first write. Consul never reports 0, because a reader that sends index
// 0 does not wait.
const firstIndex = 1

// tombstoneAge is how long the deletion of a key itself holds the index of its prefixes up (Consul's tombstone TTL).
// After that, deletions share one floor, so that an index never falls.
const tombstoneAge = 15 * time.Minute

// entry is one key. Entries and their values never change in the store; a write replaces them. The field names are
// those of Consul's JSON.
type entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

func (e *entry) same(o *entry) bool {
	return e.LockIndex == o.LockIndex && e.Flags == o.Flags && e.Session == o.Session && bytes.Equal(e.Value, o.Value)
}

// changes names what a write changed, for waiting readers. Names may be repeated.
type changes struct {
	Keys     []string
	Sessions []string
}

// keyStore is the state of the registry and all rules about it. Its methods depend on the state, the arguments and the
// given time only. It is not safe for concurrent use. Times must not go back from call to call.
type keyStore struct {
	index    uint64 // of the last write
	kvIndex  uint64 // of the last write that changed a key
	floor    uint64 // no list reports less: index of the newest forgotten tombstone
	entries  ordered[*entry]
	graves   ordered[uint64] // deleted key or subtree → index of the deletion
	burials  []burial        // deletions in the order of time
	sessions map[string]*lease
	delays   map[string]time.Time // key → until when it cannot be locked
	node     string

	sessionIndex uint64 // of the last write that made or ended a session
}

type burial struct {
	key   string
	index uint64
	at    time.Time
}

// newKeyStore makes an empty store. The node's name is that of the sessions made in it.
func newKeyStore(node string) *keyStore {
	return &keyStore{
		index:    firstIndex,
		entries:  newOrdered[*entry](),
		graves:   newOrdered[uint64](),
		sessions: map[string]*lease{},
		delays:   map[string]time.Time{},
		node:     node,
	}
}

// get returns the key, or nil, and the index to wait on: of the key if it exists, else of the last change of any key.
func (s *keyStore) get(key string) (*entry, uint64) {
	e, ok := s.entries.get(key)
	if !ok {
		return nil, max(s.kvIndex, firstIndex)
	}
	return e, e.ModifyIndex
}

// list returns all keys under the prefix in their order, and the index to wait on: of the last write or deletion under
// the prefix, or of the last change of any key if none is known.
func (s *keyStore) list(prefix string) ([]*entry, uint64) {
	var list []*entry
	var index uint64
	for _, e := range s.entries.under(prefix) {
		list = append(list, e)
		index = max(index, e.ModifyIndex)
	}
	return list, s.listIndex(prefix, index)
}

// keys is list with the names alone. With a separator each name ends after the first separator behind the prefix, and
// comes once.
func (s *keyStore) keys(prefix, separator string) ([]string, uint64) {
	names := []string{}
	var index uint64
	for key, e := range s.entries.under(prefix) {
		index = max(index, e.ModifyIndex)
		if at := strings.Index(key[len(prefix):], separator); separator != "" && at >= 0 {
			key = key[:len(prefix)+at+len(separator)]
			if len(names) > 0 && names[len(names)-1] == key {
				continue
			}
		}
		names = append(names, key)
	}
	return names, s.listIndex(prefix, index)
}

func (s *keyStore) listIndex(prefix string, newest uint64) uint64 {
	if prefix == "" {
		return max(s.kvIndex, firstIndex)
	}
	for _, index := range s.graves.under(prefix) {
		newest = max(newest, index)
	}
	if newest == 0 {
		return max(s.kvIndex, firstIndex)
	}
	return max(newest, s.floor)
}

// apply does one operation by itself, as a KV request does. ok is false if the state of the key refuses the operation:
// a stale index, a lock of another session, a lock delay. The error is for operations that are wrong in any state, such
// as one with a missing session.
func (s *keyStore) apply(now time.Time, op operation) (ok bool, touched changes, err error) {
	if what := s.precheck(now, op); what != nil {
		return false, changes{}, refusalOrError(what)
	}
	t := s.begin(now)
	if _, err := t.do(op); err != nil {
		t.rollback()
		return false, changes{}, refusalOrError(err)
	}
	return true, t.commit(), nil
}

// bury notes the deletion of a key or, for a subtree, of its prefix.
func (s *keyStore) bury(key string, index uint64, now time.Time) {
	if key == "" { // everything was deleted: no list may report less
		s.floor = index
		return
	}
	s.graves.set(key, index)
	s.burials = append(s.burials, burial{key, index, now})
	for len(s.burials) > 0 && now.Sub(s.burials[0].at) >= tombstoneAge {
		old := s.burials[0]
		s.burials = s.burials[1:]
		s.floor = max(s.floor, old.index)
		if index, _ := s.graves.get(old.key); index == old.index {
			s.graves.remove(old.key)
		}
	}
}
