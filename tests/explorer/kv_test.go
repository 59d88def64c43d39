package explorer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// entry is one key of the store. Values are never changed, only replaced.
type entry struct {
	Value   any
	Index   uint64
	Session string
	Locks   uint64 // how often it was locked; a write that is no lock forgets that
}

// lease is a session: its end deletes what it locks, or releases it.
type lease struct {
	Owner   int // agent
	Deletes bool
	Heard   time.Time // last renewal
	Left    bool      // its owner renews it no more
}

// store is the registry: keys with indexes, sessions, transactions.
type store struct {
	Keys     map[string]entry
	Sessions map[string]lease
	Index    uint64
}

func newStore() store { return store{Keys: map[string]entry{}, Sessions: map[string]lease{}, Index: 1} }

func (s store) clone() store {
	return store{maps.Clone(s.Keys), maps.Clone(s.Sessions), s.Index}
}

// The verbs of a transaction, spelt as Consul spells them.
const (
	verbCAS        = "cas"
	verbSet        = "set"
	verbLock       = "lock"
	verbUnlock     = "unlock"
	verbIndex      = "check-index"
	verbSession    = "check-session"
	verbAbsent     = "check-not-exists"
	verbDelete     = "delete"
	verbDeleteTree = "delete-tree"
	verbGet        = "get"
	verbSteal      = "steal" // a lock without its conditions: no registry has it
)

// op is one operation of a transaction.
type op struct {
	Verb    string
	Key     string
	Index   uint64
	Session string
	Value   any
}

func opCAS(key string, index uint64, v any) op {
	return op{Verb: verbCAS, Key: key, Index: index, Value: v}
}

func opLock(key, session string, v any) op {
	return op{Verb: verbLock, Key: key, Session: session, Value: v}
}

func opUnlock(key, session string, v any) op {
	return op{Verb: verbUnlock, Key: key, Session: session, Value: v}
}
func opIndex(key string, index uint64) op { return op{Verb: verbIndex, Key: key, Index: index} }
func opSession(key, session string) op    { return op{Verb: verbSession, Key: key, Session: session} }
func opAbsent(key string) op              { return op{Verb: verbAbsent, Key: key} }
func opDelete(key string) op              { return op{Verb: verbDelete, Key: key} }
func opDeleteTree(key string) op          { return op{Verb: verbDeleteTree, Key: key} }
func opSet(key string, v any) op          { return op{Verb: verbSet, Key: key, Value: v} }
func opGet(key string) op                 { return op{Verb: verbGet, Key: key} }

// commit does all operations or none; refused says why it did none. It returns the store afterwards.
func (s store) commit(ops []op) (next store, refused string) {
	n := s.clone()
	n.Index++
	for _, o := range ops {
		if why := n.do(o); why != "" {
			return s, why
		}
	}
	return n, ""
}

func (s *store) do(o op) string {
	e, ok := s.Keys[o.Key]
	switch o.Verb {
	case verbCAS:
		if ok && (o.Index == 0 || o.Index != e.Index) || !ok && o.Index != 0 {
			return fmt.Sprintf("%s: index is stale", o.Key)
		}
		s.put(o.Key, entry{Value: o.Value, Session: e.Session})
	case verbSet:
		s.put(o.Key, entry{Value: o.Value, Session: e.Session})
	case verbLock:
		if _, lives := s.Sessions[o.Session]; !lives {
			return "invalid session " + o.Session
		}
		if ok && e.Session != "" && e.Session != o.Session {
			return o.Key + ": lock is already held"
		}
		locks := e.Locks + 1
		if e.Session == o.Session {
			locks = e.Locks
		}
		s.put(o.Key, entry{Value: o.Value, Session: o.Session, Locks: locks})
	case verbSteal:
		s.put(o.Key, entry{Value: o.Value, Session: o.Session})
	case verbUnlock:
		if !ok || e.Session != o.Session {
			return o.Key + ": lock isn't held"
		}
		s.put(o.Key, entry{Value: o.Value, Locks: e.Locks})
	case verbIndex:
		if !ok || e.Index != o.Index {
			return fmt.Sprintf("%s: failed index check", o.Key)
		}
	case verbSession:
		if !ok || e.Session != o.Session {
			return fmt.Sprintf("%s: failed session check", o.Key)
		}
	case verbAbsent:
		if ok {
			return o.Key + " exists"
		}
	case verbDelete:
		delete(s.Keys, o.Key)
	case verbDeleteTree:
		maps.DeleteFunc(s.Keys, func(k string, _ entry) bool { return strings.HasPrefix(k, o.Key) })
	case verbGet:
		if !ok {
			return o.Key + " doesn't exist"
		}
	default:
		return "unknown verb " + o.Verb
	}
	return ""
}

// put writes unless nothing changes: then the index stays.
func (s *store) put(key string, e entry) {
	if old, ok := s.Keys[key]; ok && old.Session == e.Session && old.Locks == e.Locks && reflect.DeepEqual(old.Value, e.Value) {
		return
	}
	e.Index = s.Index
	s.Keys[key] = e
}

// end ends a session.
func (s *store) end(id string) {
	l, ok := s.Sessions[id]
	if !ok {
		return
	}
	delete(s.Sessions, id)
	s.Index++
	for _, k := range slices.Sorted(maps.Keys(s.Keys)) {
		e := s.Keys[k]
		switch {
		case e.Session != id:
		case l.Deletes:
			delete(s.Keys, k)
		default:
			e.Session, e.Index = "", s.Index
			s.Keys[k] = e
		}
	}
}

// under lists the keys with a prefix, in order.
func (s store) under(prefix string) []string {
	var names []string
	for k := range s.Keys {
		if strings.HasPrefix(k, prefix) {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// read is a value of the store; zero without the key.
func read[T any](s store, key string) (v T, e entry, ok bool) {
	e, ok = s.Keys[key]
	if ok {
		v = e.Value.(T)
	}
	return v, e, ok
}
