package consul

import (
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// mostBody is what Consul takes in a request: txn_max_req_len and kv_max_value_size.
const mostBody = 512 << 10

// What keep leaves in one piece fits into a transaction with the directive, whatever the names, and so does a
// chunk of what it does not.
func TestTransactionsFit(t *testing.T) {
	k, session := keysOf(strings.Repeat("a", 63)), strings.Repeat("s", 36)
	longest := registry.Instance{Component: strings.Repeat("c", 63), Index: 1_000_000}
	directive := make([]byte, 4096)
	ops := api.TxnOps{
		opIndex(k.directive(), 1<<62),
		opCAS(k.app(), 1<<62, make([]byte, mostValues-2*len(directive))),
		opCAS(k.directive(), 1<<62, directive),
		opLock(k.directive(), session, directive),
	}
	for len(ops) < mostOps {
		ops = append(ops, opAbsent(k.live(longest)))
	}
	if n := len(encode(ops)); n > mostBody {
		t.Errorf("a new run's transaction has %d bytes, want at most %d", n, mostBody)
	}
	chunk := api.TxnOps{opCAS(k.def(registry.DefID(""), 1<<30), 1<<62, make([]byte, registry.ChunkSize))}
	if n := len(encode(chunk)); n > mostBody {
		t.Errorf("a chunk's transaction has %d bytes, want at most %d", n, mostBody)
	}
}
