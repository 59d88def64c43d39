package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// mostOps is how many operations Consul takes in a transaction.
const mostOps = 128

// Consul refuses a lock within the lock delay of the last holder's session, even of one with 1 ms in the same
// millisecond, and says so.
const (
	lockDelayPause = 5 * time.Millisecond
	lockDelayLimit = time.Second
)

func op(kv api.KVTxnOp) *api.TxnOp { return &api.TxnOp{KV: &kv} }

func opGet(key string) *api.TxnOp        { return op(api.KVTxnOp{Verb: api.KVGet, Key: key}) }
func opGetOrEmpty(key string) *api.TxnOp { return op(api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key}) }
func opDelete(key string) *api.TxnOp     { return op(api.KVTxnOp{Verb: api.KVDelete, Key: key}) }
func opGetTree(prefix string) *api.TxnOp { return op(api.KVTxnOp{Verb: api.KVGetTree, Key: prefix}) }

func opSet(key string, value []byte) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVSet, Key: key, Value: value})
}

func opDeleteTree(prefix string) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVDeleteTree, Key: prefix})
}

func opAbsent(key string) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVCheckNotExists, Key: key})
}

func opIndex(key string, index uint64) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: index})
}

func opSession(key, session string) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVCheckSession, Key: key, Session: session})
}

// opCAS writes if the key still has that index; 0: if it does not exist.
func opCAS(key string, index uint64, value []byte) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVCAS, Key: key, Index: index, Value: value})
}

func opLock(key, session string, value []byte) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVLock, Key: key, Session: session, Value: value})
}

func opUnlock(key, session string, value []byte) *api.TxnOp {
	return op(api.KVTxnOp{Verb: api.KVUnlock, Key: key, Session: session, Value: value})
}

// opDropAsks deletes what was asked of a run, but not what the operator has said of dead members.
func opDropAsks(k keys) []*api.TxnOp {
	var ops []*api.TxnOp
	for _, kind := range []string{registry.AskStop, registry.AskFlex, registry.AskSave} {
		ops = append(ops, opDeleteTree(k.asks()+kind+"/"))
	}
	return ops
}

// results are the answers of a transaction, by key: the last operation on a key wins.
type results map[string]*api.KVPair

// at is the pair of a key, nil when it does not exist (get-or-empty answers with index 0).
func (r results) at(key string) *api.KVPair {
	if p := r[key]; p != nil && p.ModifyIndex != 0 {
		return p
	}
	return nil
}

// index is the index that a write gave to a key.
func (r results) index(key string) uint64 {
	if p := r[key]; p != nil {
		return p.ModifyIndex
	}
	return 0
}

// commit does all operations or none. The error is a *refusal if the registry answered that it did nothing, and
// registry.ErrUnreachable if the result is unknown.
func (l *connection) commit(ctx context.Context, ops ...*api.TxnOp) (results, error) {
	return l.transact(ctx, byDefault, ops)
}

// readKeys reads keys in one request, whether they exist or not.
func (l *connection) readKeys(ctx context.Context, c consistency, names ...string) (results, error) {
	ops := make(api.TxnOps, 0, len(names))
	for _, name := range names {
		ops = append(ops, opGetOrEmpty(name))
	}
	return l.transact(ctx, c, ops)
}

func (l *connection) transact(ctx context.Context, c consistency, ops api.TxnOps) (results, error) {
	end := time.Now().Add(lockDelayLimit)
	for {
		res, err := l.send(ctx, c, ops)
		var r *refusal
		if !errors.As(err, &r) || !r.has("lock delay") || time.Now().After(end) {
			return res, err
		}
		if err := pause(ctx, lockDelayPause); err != nil {
			return nil, err
		}
	}
}

func (l *connection) send(ctx context.Context, c consistency, ops api.TxnOps) (results, error) {
	limit := callTime
	if slices.ContainsFunc(ops, func(o *api.TxnOp) bool { return o.KV.Verb == api.KVGetTree }) {
		limit = l.large // its answer grows with the gang
	}
	var answer api.TxnResponse
	err := l.within(ctx, limit, "transaction on "+ops[0].KV.Key, func(ctx context.Context) error {
		body, err := l.plain(ctx, http.MethodPut, "/v1/txn"+c.query("?"), bytes.NewReader(encode(ops)))
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &answer)
	})
	if err != nil {
		return nil, refused(err)
	}
	res := make(results, len(answer.Results))
	for _, r := range answer.Results {
		if r != nil && r.KV != nil {
			res[r.KV.Key] = r.KV
		}
	}
	return res, l.hidden(ctx, ops, res)
}

// hidden finds keys that the registry keeps from this token: Consul answers 200 and leaves them out, although
// get-or-empty has an answer for every key. Only the read of such a key alone is refused, with the reason.
func (l *connection) hidden(ctx context.Context, ops api.TxnOps, res results) error {
	for _, o := range ops {
		if o.KV.Verb != api.KVGetOrEmpty || res[o.KV.Key] != nil {
			continue
		}
		if _, err := l.get(ctx, o.KV.Key, byDefault); err != nil {
			return err
		}
		return fmt.Errorf("read %s: %w: the answer lacks it", o.KV.Key, registry.ErrForbidden)
	}
	return nil
}

// refused turns an answer 409 into a refusal. A missing right of the token comes as 409 too: it is
// registry.ErrForbidden and no refusal, because reading and trying again does not help.
func refused(err error) error {
	var status api.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusConflict {
		return err
	}
	var answer api.TxnResponse
	if json.Unmarshal([]byte(status.Body), &answer) != nil {
		return &refusal{what: []string{status.Body}}
	}
	r := &refusal{}
	for _, e := range answer.Errors {
		r.what = append(r.what, e.What)
	}
	if r.has(noRight) {
		return fmt.Errorf("%w: %s", registry.ErrForbidden, strings.Join(slices.Compact(r.what), "; "))
	}
	return r
}
