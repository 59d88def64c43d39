package login

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// HostKey is the key of an instance's server. It follows from the run's token, as the key that its agent shows to
// peers: a client that may read the app's keys knows it without asking the host, and the next agent of the instance has
// the same.
func HostKey(token, app, instance string) (ssh.Signer, error) {
	if token == "" {
		return nil, errors.New("ssh host key: the run has no token")
	}
	info := "muster ssh host key\x00" + app + "\x00" + instance
	seed, err := hkdf.Key(sha256.New, []byte(token), nil, info, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("ssh host key: %w", err)
	}
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
}

// NewKey makes a key of a client: the private half as a file of OpenSSH's, the public half as a line of
// authorized_keys.
func NewKey(comment string) (private, public string, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make an ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return "", "", fmt.Errorf("make an ssh key: %w", err)
	}
	private = string(pem.EncodeToMemory(block))
	public, err = PublicOf(private)
	return private, public, err
}

// NewPassword makes a password, and the key in whose place it stands where it is permitted.
func NewPassword() (password, key string) {
	password = rand.Text()[:16] // of 5 bits each: nobody finds it by what stands in the registry
	return password, keyOfPassword(password)
}

func keyOfPassword(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "password " + hex.EncodeToString(sum[:])
}

// PublicOf is the public half of a file of NewKey's, as a line of authorized_keys.
func PublicOf(private string) (string, error) {
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		return "", fmt.Errorf("ssh key: %w", err)
	}
	return line(signer.PublicKey()), nil
}

// line is a key as a line of authorized_keys, without the end of the line.
func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }
