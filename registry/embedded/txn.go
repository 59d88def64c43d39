package embedded

import (
	"errors"
	"fmt"
	"time"
)

// txnVerb names an operation on keys, spelt as in a transaction.
type txnVerb string

// The verbs of Consul's KV operations.
const (
	verbSet            txnVerb = "set"
	verbCAS            txnVerb = "cas"
	verbLock           txnVerb = "lock"
	verbUnlock         txnVerb = "unlock"
	verbGet            txnVerb = "get"
	verbGetOrEmpty     txnVerb = "get-or-empty"
	verbGetTree        txnVerb = "get-tree"
	verbCheckIndex     txnVerb = "check-index"
	verbCheckSession   txnVerb = "check-session"
	verbCheckNotExists txnVerb = "check-not-exists"
	verbDelete         txnVerb = "delete"
	verbDeleteCAS      txnVerb = "delete-cas"
	verbDeleteTree     txnVerb = "delete-tree"
)

// operation is one operation. Index is the expected ModifyIndex (cas, delete-cas, check-index; 0 in cas
// means that the key must not exist), Session the holder (lock, unlock, check-session).
type operation struct {
	Verb    txnVerb
	Key     string
	Value   []byte
	Flags   uint64
	Index   uint64
	Session string
}

// opResult is the answer to one operation of a transaction; only reads have a value.
type opResult struct {
	KV *entry
}

// opError is why an operation of a transaction was refused.
type opError struct {
	OpIndex int
	What    string
}

// refusal is an error that depends on the state of the key; a KV request answers it with false.
type refusal string

func (r refusal) Error() string { return string(r) }

func refusalOrError(err error) error {
	if _, ok := errors.AsType[refusal](err); ok {
		return nil
	}
	return err
}

// txn does all operations or none. It names all that were refused; later operations see what earlier ones wrote. A lock
// delay or a missing key name refuses the transaction before any read.
func (s *keyStore) txn(now time.Time, ops []operation) ([]opResult, []opError, changes) {
	var refused []opError
	for i, op := range ops {
		if err := s.precheck(now, op); err != nil {
			refused = append(refused, opError{i, err.Error()})
		}
	}
	if refused != nil {
		return nil, refused, changes{}
	}
	t := s.begin(now)
	results := []opResult{}
	for i, op := range ops {
		got, err := t.do(op)
		if err != nil {
			refused = append(refused, opError{i, err.Error()})
		}
		results = append(results, got...)
	}
	if refused != nil {
		t.rollback()
		return nil, refused, changes{}
	}
	return results, nil, t.commit()
}

func (s *keyStore) precheck(now time.Time, op operation) error {
	if op.Key == "" && op.Verb != verbDeleteTree {
		return errors.New("Must provide key")
	}
	if op.Verb == verbLock && s.delays[op.Key].After(now) {
		return refusal(fmt.Sprintf("failed to lock key %q due to lock delay", op.Key))
	}
	return nil
}

// tx writes into the store at once, and remembers what was there before.
type tx struct {
	s      *keyStore
	now    time.Time
	index  uint64
	undo   []previous
	graves []string
}

type previous struct {
	key   string
	entry *entry // nil: there was none
}

func (s *keyStore) begin(now time.Time) *tx { return &tx{s: s, now: now, index: s.index + 1} }

func (t *tx) commit() changes {
	t.s.index = t.index
	if len(t.undo) == 0 {
		return changes{}
	}
	t.s.kvIndex = t.index
	for _, key := range t.graves {
		t.s.bury(key, t.index, t.now)
	}
	touched := changes{Keys: make([]string, len(t.undo))}
	for i, p := range t.undo {
		touched.Keys[i] = p.key
	}
	return touched
}

func (t *tx) rollback() {
	for len(t.undo) > 0 {
		last := t.undo[len(t.undo)-1]
		t.undo = t.undo[:len(t.undo)-1]
		if last.entry == nil {
			t.s.entries.remove(last.key)
		} else {
			t.s.entries.set(last.key, last.entry)
		}
	}
}

func (t *tx) look(key string) *entry {
	e, _ := t.s.entries.get(key)
	return e
}

// put stores the entry. If it equals the existing one, that stays with its index. It returns what the store holds.
func (t *tx) put(e entry) *entry {
	old := t.look(e.Key)
	if old != nil && old.same(&e) {
		return old
	}
	e.CreateIndex, e.ModifyIndex = t.index, t.index
	if old != nil {
		e.CreateIndex = old.CreateIndex
	}
	t.undo = append(t.undo, previous{e.Key, old})
	t.s.entries.set(e.Key, &e)
	return &e
}

func (t *tx) remove(key string) {
	t.undo = append(t.undo, previous{key, t.look(key)})
	t.s.entries.remove(key)
}

// do runs one operation; its texts are Consul's.
func (t *tx) do(op operation) ([]opResult, error) {
	switch op.Verb {
	case verbSet:
		return bare(t.set(op), nil)
	case verbCAS:
		return bare(t.cas(op))
	case verbLock:
		return bare(t.lock(op))
	case verbUnlock:
		return bare(t.unlock(op))
	case verbDelete:
		t.delete(op.Key)
		return nil, nil
	case verbDeleteCAS:
		return nil, t.deleteCAS(op)
	case verbDeleteTree:
		t.deleteTree(op.Key)
		return nil, nil
	case verbGetTree:
		list, _ := t.s.list(op.Key)
		results := make([]opResult, len(list))
		for i, e := range list {
			results[i].KV = e
		}
		return results, nil
	case verbGet, verbGetOrEmpty:
		return t.get(op)
	case verbCheckNotExists:
		return nil, t.checkNotExists(op.Key)
	case verbCheckIndex:
		return bare(t.checkIndex(op))
	case verbCheckSession:
		return bare(t.checkSession(op))
	}
	return nil, fmt.Errorf("unknown KV verb %q", op.Verb)
}

func (t *tx) get(op operation) ([]opResult, error) {
	e := t.look(op.Key)
	if e == nil && op.Verb == verbGet {
		return nil, fmt.Errorf("key %q doesn't exist", op.Key)
	}
	if e == nil { // Consul answers with the operation itself
		e = &entry{Key: op.Key, Flags: op.Flags, Session: op.Session, ModifyIndex: op.Index}
	}
	return []opResult{{e}}, nil
}

func (t *tx) checkNotExists(key string) error {
	if t.look(key) != nil {
		return fmt.Errorf("key %q exists", key)
	}
	return nil
}

func (t *tx) checkIndex(op operation) (*entry, error) {
	e := t.look(op.Key)
	if e == nil {
		return nil, fmt.Errorf("failed to check index, key %q doesn't exist", op.Key)
	}
	if e.ModifyIndex != op.Index {
		return nil, fmt.Errorf("failed index check for key %q, current modify index %d != %d", op.Key, e.ModifyIndex,
			op.Index)
	}
	return e, nil
}

func (t *tx) checkSession(op operation) (*entry, error) {
	e := t.look(op.Key)
	if e == nil {
		return nil, fmt.Errorf("failed to check session, key %q doesn't exist", op.Key)
	}
	if e.Session != op.Session {
		return nil, fmt.Errorf("failed session check for key %q, current session %q != %q", op.Key, e.Session,
			op.Session)
	}
	return e, nil
}

// bare is the result of all operations but reads: the entry without its value.
func bare(e *entry, err error) ([]opResult, error) {
	if err != nil {
		return nil, err
	}
	short := *e
	short.Value = nil
	return []opResult{{&short}}, nil
}

// set keeps the holder of a lock but, as in Consul, not the count of locks: a write that is no lock sets LockIndex to
// 0.
func (t *tx) set(op operation) *entry {
	e := entry{Key: op.Key, Value: op.Value, Flags: op.Flags}
	if old := t.look(op.Key); old != nil {
		e.Session = old.Session
	}
	return t.put(e)
}

func (t *tx) cas(op operation) (*entry, error) {
	old := t.look(op.Key)
	missing := old == nil && op.Index == 0
	current := old != nil && op.Index != 0 && op.Index == old.ModifyIndex
	if !missing && !current {
		return nil, refusal(fmt.Sprintf("failed to set key %q, index is stale", op.Key))
	}
	return t.set(op), nil
}

func (t *tx) lock(op operation) (*entry, error) {
	if op.Session == "" {
		return nil, errors.New("missing session")
	}
	if t.s.sessions[op.Session] == nil {
		return nil, fmt.Errorf("invalid session %#v", op.Session)
	}
	e := entry{Key: op.Key, Value: op.Value, Flags: op.Flags, Session: op.Session, LockIndex: 1}
	if old := t.look(op.Key); old != nil {
		switch old.Session {
		case op.Session:
			e.LockIndex = old.LockIndex
		case "":
			e.LockIndex = old.LockIndex + 1
		default:
			return nil, refusal(fmt.Sprintf("failed to lock key %q, lock is already held", op.Key))
		}
	}
	return t.put(e), nil
}

func (t *tx) unlock(op operation) (*entry, error) {
	if op.Session == "" {
		return nil, errors.New("missing session")
	}
	old := t.look(op.Key)
	if old == nil || old.Session != op.Session {
		return nil, refusal(fmt.Sprintf("failed to unlock key %q, lock isn't held, or is held by another session",
			op.Key))
	}
	return t.put(entry{Key: op.Key, Value: op.Value, Flags: op.Flags, LockIndex: old.LockIndex}), nil
}

func (t *tx) delete(key string) {
	if t.look(key) == nil {
		return
	}
	t.remove(key)
	t.graves = append(t.graves, key)
}

// deleteCAS treats a missing key as deleted, whatever the index.
func (t *tx) deleteCAS(op operation) error {
	if e := t.look(op.Key); e != nil && e.ModifyIndex != op.Index {
		return refusal(fmt.Sprintf("failed to delete key %q, index is stale", op.Key))
	}
	t.delete(op.Key)
	return nil
}

func (t *tx) deleteTree(prefix string) {
	list, _ := t.s.list(prefix)
	for _, e := range list {
		t.remove(e.Key)
	}
	if len(list) > 0 {
		t.graves = append(t.graves, prefix)
	}
}
