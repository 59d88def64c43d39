package secret

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestKeyring(t *testing.T) {
	name := fmt.Sprintf("muster-test-%d", os.Getpid())
	id, err := unix.AddKey("user", name, []byte("s3cret"), unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0) }) // it ends with the process
	values, err := Read(map[string]string{"TOKEN": "keyring:" + name})
	if err != nil || values["TOKEN"] != "s3cret" {
		t.Errorf("got %q, %v", values, err)
	}
	_, err = Read(map[string]string{"TOKEN": "keyring:" + name + "-none"})
	if err == nil || !strings.Contains(err.Error(), "secret TOKEN") || !strings.Contains(err.Error(), "keyctl add user") {
		t.Errorf("a key that is not there: got %v", err)
	}
}
