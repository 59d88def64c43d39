package embedded

import (
	"bytes"
	"strings"
	"time"
)

// firstIndex is what a store reports before its first write. Consul never reports 0, because a
// reader that sends index 0 does not wait.
const firstIndex = 1

// tombstoneAge is how long the deletion of a key keeps the index of its prefixes up by itself
// (Consul's tombstone TTL). Later deletions share one floor, so that an index never falls.
const tombstoneAge = 15 * time.Minute

// Entry is one key. Entries and their values are never changed once they are in the store; a write
// puts a new one in place. The field names are those of Consul's JSON.
type Entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

func (e *Entry) same(o *Entry) bool {
	return e.LockIndex == o.LockIndex && e.Flags == o.Flags && e.Session == o.Session && bytes.Equal(e.Value, o.Value)
}

// Touched names what a write changed, for those who wait. Names may come twice.
type Touched struct {
	Keys     []string
	Sessions []string
}

// Store is the state of the registry and every rule about it. Its methods are functions of the
// state, the arguments and the time given with them. It is not safe for concurrent use. Times must
// not go back from call to call.
type Store struct {
	index    uint64 // of the last write
	kvIndex  uint64 // of the last write that changed a key
	floor    uint64 // no list reports less: of the newest forgotten tombstone
	entries  ordered[*Entry]
	graves   ordered[uint64] // deleted key or subtree → index of the deletion
	burials  []burial        // the same in the order of time
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

// NewStore makes an empty store. The node's name is that of the sessions made in it.
func NewStore(node string) *Store {
	return &Store{
		index:    firstIndex,
		entries:  newOrdered[*Entry](),
		graves:   newOrdered[uint64](),
		sessions: map[string]*lease{},
		delays:   map[string]time.Time{},
		node:     node,
	}
}

// Get returns the key, or nil, and the index to wait on: of the key when there is one, else of the
// last change of any key.
func (s *Store) Get(key string) (*Entry, uint64) {
	e, ok := s.entries.get(key)
	if !ok {
		return nil, max(s.kvIndex, firstIndex)
	}
	return e, e.ModifyIndex
}

// List returns all keys under the prefix in their order, and the index to wait on: of the last write
// or deletion under the prefix, or of the last change of any key when nothing is known of it.
func (s *Store) List(prefix string) ([]*Entry, uint64) {
	var list []*Entry
	var index uint64
	for _, e := range s.entries.under(prefix) {
		list = append(list, e)
		index = max(index, e.ModifyIndex)
	}
	return list, s.listIndex(prefix, index)
}

// Keys is List with the names alone. With a separator each name ends after the first separator that
// follows the prefix, and comes once.
func (s *Store) Keys(prefix, separator string) ([]string, uint64) {
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

func (s *Store) listIndex(prefix string, newest uint64) uint64 {
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

// Apply does one operation by itself, as a KV request does. ok is false when the operation was
// refused for the state of the key: a stale index, a lock of somebody else, a lock delay. The error
// is for what is wrong whatever the state, such as a session that does not exist.
func (s *Store) Apply(now time.Time, op Op) (ok bool, touched Touched, err error) {
	if what := s.precheck(now, op); what != nil {
		return false, Touched{}, refusalOrError(what)
	}
	t := s.begin(now)
	if _, err := t.do(op); err != nil {
		t.rollback()
		return false, Touched{}, refusalOrError(err)
	}
	return true, t.commit(), nil
}

// bury notes the deletion of a key or, for a subtree, of its prefix.
func (s *Store) bury(key string, index uint64, now time.Time) {
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
