//go:build !race

package sign

import (
	"errors"
	"path/filepath"
	"testing"
)

const underRace = false

// TestMinisignsPassword: a key that the program encrypted.
func TestMinisignsPassword(t *testing.T) {
	program := findMinisign(t)
	dir := t.TempDir()
	key, pub := filepath.Join(dir, "m.key"), filepath.Join(dir, "m.pub")
	program.must(t, "correct horse\ncorrect horse\n", "-G", "-s", key, "-p", pub)
	if _, err := OpenSecretKey(key, func() (string, error) { return "battery", nil }); !errors.Is(err, errPassword) {
		t.Errorf("another password: got %v", err)
	}
	secret, err := OpenSecretKey(key, func() (string, error) { return "correct horse", nil })
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	if _, err := Sign(file, secret, ""); err != nil {
		t.Fatal(err)
	}
	program.must(t, "", "-V", "-p", pub, "-m", file)
}
