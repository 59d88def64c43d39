package consulhttp

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

func (l *lab) set(name, value string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVSet, Key: l.k(name), Value: []byte(value)}
}

func (l *lab) cas(name string, index uint64, value string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVCAS, Key: l.k(name), Index: index, Value: []byte(value)}
}

func (l *lab) lock(name, session, value string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVLock, Key: l.k(name), Session: session, Value: []byte(value)}
}

func (l *lab) unlock(name, session, value string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVUnlock, Key: l.k(name), Session: session, Value: []byte(value)}
}

func (l *lab) checkIndex(name string, index uint64) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVCheckIndex, Key: l.k(name), Index: index}
}

func (l *lab) checkSession(name, session string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVCheckSession, Key: l.k(name), Session: session}
}

// op is a verb that needs the key alone.
func (l *lab) op(verb api.KVOp, name string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: verb, Key: l.k(name)}
}

func (l *lab) txn(ops ...*api.KVTxnOp) (bool, *api.TxnResponse) {
	l.Helper()
	all := make(api.TxnOps, len(ops))
	for i, op := range ops {
		all[i] = &api.TxnOp{KV: op}
	}
	ok, resp, _, err := l.api.Txn().Txn(all, (&api.QueryOptions{}).WithContext(l.ctx))
	if err != nil {
		l.Fatalf("txn: %v", err)
	}
	return ok, resp
}

// accept does a transaction that must go through and returns its results.
func (l *lab) accept(what string, ops ...*api.KVTxnOp) []*api.KVPair {
	l.Helper()
	ok, resp := l.txn(ops...)
	if !ok || len(resp.Errors) > 0 {
		l.Fatalf("%s: got refused (%s), want accepted", what, l.reasons(resp))
	}
	return results(resp)
}

// lockRetry is the pause of the protocol after a lock was refused for its delay.
const lockRetry = 5 * time.Millisecond

// acceptLater is accept for a lock whose delay may not be over.
func (l *lab) acceptLater(what string, ops ...*api.KVTxnOp) []*api.KVPair {
	l.Helper()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for ; l.ctx.Err() == nil; <-retry.C {
		ok, resp := l.txn(ops...)
		if ok {
			return results(resp)
		}
		if why := l.reasons(resp); !strings.Contains(why, "lock delay") {
			l.Fatalf("%s: got refused (%s), want accepted", what, why)
		}
	}
	l.Fatalf("%s: the lock delay does not end", what)
	return nil
}

// refuse does a transaction that must not go through for exactly these reasons.
func (l *lab) refuse(what, reasons string, ops ...*api.KVTxnOp) {
	l.Helper()
	ok, resp := l.txn(ops...)
	if ok || resp.Results != nil {
		l.Fatalf("%s: got accepted, want refused (%s)", what, reasons)
	}
	want(l, what, l.reasons(resp), reasons)
}

func results(resp *api.TxnResponse) []*api.KVPair {
	var pairs []*api.KVPair
	for _, r := range resp.Results {
		pairs = append(pairs, r.KV)
	}
	return pairs
}

// reasons is `0: text; 2: text`, with the names of the keys as the case gave them.
func (l *lab) reasons(resp *api.TxnResponse) string {
	var texts []string
	for _, e := range resp.Errors {
		texts = append(texts, fmt.Sprintf("%d: %s", e.OpIndex, strings.ReplaceAll(e.What, l.prefix, "")))
	}
	return strings.Join(texts, "; ")
}
