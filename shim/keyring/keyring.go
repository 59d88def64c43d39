package keyring

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mostKey bounds a key's payload, in bytes: that of the kernel for type user (keyrings(7)).
const mostKey = 32767

// Read reads the key of type `user` with this description from the keyrings of the agent's process, session or
// user (request_key(2)). Nobody is asked to make one that is not there.
func Read(name string) (string, error) {
	id, err := unix.RequestKey("user", name, "", 0)
	if errors.Is(err, unix.ENOKEY) {
		// A session of its own has no link to the user's keyring.
		id, err = unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", name, 0)
	}
	if err != nil {
		return "", fmt.Errorf("key %q: %w; want one of type user: keyctl add user %s … @u", name, err, name)
	}
	buffer := make([]byte, mostKey)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buffer, 0)
	if err != nil {
		return "", fmt.Errorf("read key %q: %w", name, err)
	}
	return string(buffer[:min(n, len(buffer))]), nil
}
