package secret

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

func TestKeyring(t *testing.T) {
	name := fmt.Sprintf("muster-test-%d", os.Getpid())
	id, err := unix.AddKey("user", name, []byte("s3cret"), unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0) }) // it ends with the process
	from := Source{Policy: policy.Policy{SecretKeyring: []string{"muster-test-*"}}}
	values, err := from.Read(map[string]string{"TOKEN": "keyring:" + name})
	if err != nil || values["TOKEN"] != "s3cret" {
		t.Errorf("got %q, %v", values, err)
	}
	_, err = from.Read(map[string]string{"TOKEN": "keyring:" + name + "-none"})
	if err == nil || !strings.Contains(err.Error(), "secret TOKEN") || !strings.Contains(err.Error(), "keyctl add user") {
		t.Errorf("a key that is not there: got %v", err)
	}
}

// A definition names a key of root's.
func TestAttackKeyOfRoot(t *testing.T) {
	need.Root(t)
	name := fmt.Sprintf("muster-attack-%d", os.Getpid())
	id, err := unix.AddKey("user", name, []byte("s3cret"), unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0) })
	values, err := Source{}.Read(map[string]string{"TOKEN": "keyring:" + name})
	if !fault.Is(err, registry.ClassNotPermitted) || !strings.Contains(err.Error(), `"secret_keyring": ["`+name+`"]`) {
		t.Errorf("got %q, %v, want a refusal that names the policy's key", values, err)
	}
}
