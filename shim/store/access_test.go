package store_test

import (
	"testing"

	"github.com/muster-agent/muster/shim/store"
)

func TestOthersWrite(t *testing.T) {
	for mode, others := range map[uint32]bool{
		0o755: false, 0o700: false, 0o1777: false, 0o1775: false, 0o775: true, 0o777: true, 0o757: true, 0o720: true,
	} {
		if got := (store.Access{Mode: mode}).OthersWrite(); got != others {
			t.Errorf("%04o: got %t, want %t", mode, got, others)
		}
	}
}
