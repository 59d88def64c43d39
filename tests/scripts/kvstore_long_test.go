//go:build long

package scripts_test

import (
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// TestKVStoreLong is TestKVStore with what an ordinary run sees parts of: another user's process without a container.
func TestKVStoreLong(t *testing.T) {
	need.Root(t)
	newKVStore(t, nil, "--engine", "process", "--set", "muster.user=nobody").life()
}
