package hdfs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/muster-agent/muster/shim/store"
)

// A cluster whose DataNodes are all full is another thing than one whose DataNodes were not reached. Both may pass.
func TestNoDataNodeTakesABlock(t *testing.T) {
	const begins = "File /a/part-r.gz could only be written to 0 of the 1 minReplication nodes. "
	for said, want := range map[string]error{
		"There are 0 datanode(s) running and no node(s) are excluded in this operation.": store.ErrUnreachable,
		"There are 1 datanode(s) running and 1 node(s) are excluded in this operation.":  errLeftOut,
		"There are 3 datanode(s) running and 3 node(s) are excluded in this operation.":  errLeftOut,
		"There are 3 datanode(s) running and 1 node(s) are excluded in this operation.":  errNoNodes,
		"There are 3 datanode(s) running and no node(s) are excluded in this operation.": errNoNodes,
	} {
		got := condition(refusal{"java.io.IOException", begins + said})
		if !errors.Is(got, want) || !transient(got) || transient(fmt.Errorf("%w, %w", got, store.ErrWaited)) {
			t.Errorf("%s: got %v, transient %t, want %v", said, got, transient(got), want)
		}
	}
}
