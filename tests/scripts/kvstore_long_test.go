//go:build long

package scripts_test

import (
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// TestKVStoreLong is TestKVStore with what an ordinary run sees parts of: the engine that muster chooses for an ordinary user,
// and another user's process without a container.
func TestKVStoreLong(t *testing.T) {
	need.Root(t)
	for name, c := range map[string]struct {
		as   *syscall.Credential
		args []string
	}{
		"plain user":                 {plainUser(), nil},
		"as nobody without a cgroup": {nil, []string{"--engine", "process", "--set", "muster.user=nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newKVStore(t, c.as, c.args...).life()
		})
	}
}
