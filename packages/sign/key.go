package sign

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
)

// PublicKey checks signatures.
type PublicKey struct{ key minisign.PublicKey }

// ID is the key's id as minisign(1) prints it: 16 digits.
func (k PublicKey) ID() string { return idText(k.key.ID()) }

// String is the key as it is handed on: `RW…`.
func (k PublicKey) String() string { return k.key.String() }

// ParsePublicKey reads a key: the text `RW…`, with or without the line of comment that a file has.
func ParsePublicKey(text string) (PublicKey, error) {
	var k PublicKey
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, fmt.Errorf("public key: %w", unprefixed(err))
	}
	return k, nil
}

// OpenPublicKey reads a key from what a person writes: `RW…`, or the path of a file.
func OpenPublicKey(textOrPath string) (PublicKey, error) {
	if k, err := ParsePublicKey(textOrPath); err == nil {
		return k, nil
	}
	text, err := readAtMost(textOrPath, mostKey)
	if errors.Is(err, fs.ErrNotExist) {
		return PublicKey{}, fmt.Errorf("public key %s: neither a key (RW and 54 letters) nor a file", textOrPath)
	}
	if err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	k, err := ParsePublicKey(string(text))
	if err != nil {
		return k, fmt.Errorf("%s: %w", textOrPath, err)
	}
	return k, nil
}

// OpenPublicKeys is OpenPublicKey for each of several.
func OpenPublicKeys(textsOrPaths []string) ([]PublicKey, error) {
	var keys []PublicKey
	for _, text := range textsOrPaths {
		k, err := OpenPublicKey(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// mostKey bounds a key file, in bytes.
const mostKey = 4 << 10

// SecretKey makes signatures.
type SecretKey struct{ key minisign.PrivateKey }

// ID is the key's id as minisign(1) prints it: 16 digits.
func (k SecretKey) ID() string { return idText(k.key.ID()) }

// errPassword is wrapped by the error of OpenSecretKey for a password that does not fit, or a broken file: the format
// cannot tell which.
var errPassword = errors.New("wrong password, or a broken file")

// OpenSecretKey reads a key file. password is asked for only if the key is encrypted; decrypting takes a second and
// 1 GiB of memory, as minisign wants it.
func OpenSecretKey(path string, password func() (string, error)) (SecretKey, error) {
	text, err := readAtMost(path, mostKey)
	if err != nil {
		return SecretKey{}, fmt.Errorf("secret key: %w", err)
	}
	var k SecretKey
	if !minisign.IsEncrypted(text) {
		if err := k.key.UnmarshalText(text); err != nil {
			return k, fmt.Errorf("secret key %s: %w", path, unprefixed(err))
		}
		return k, nil
	}
	word, err := password()
	if err != nil {
		return k, fmt.Errorf("secret key %s: %w", path, err)
	}
	if k.key, err = minisign.DecryptKey(word, text); err != nil {
		return k, fmt.Errorf("secret key %s: %w", path, errPassword)
	}
	return k, nil
}

// Generate makes a pair of keys: prefix.key, for its owner alone, and prefix.pub. An empty password leaves prefix.key
// unencrypted. Files that are there are refused: a lost key cannot be made again.
func Generate(prefix, password string) (PublicKey, error) {
	secretPath, publicPath := prefix+".key", prefix+".pub"
	for _, path := range []string{secretPath, publicPath} {
		switch _, err := os.Lstat(path); {
		case err == nil:
			return PublicKey{}, fmt.Errorf("make keys: %s is there: %w; name another prefix", path, fs.ErrExist)
		case !errors.Is(err, fs.ErrNotExist):
			return PublicKey{}, fmt.Errorf("make keys: %w", err)
		}
	}
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		return PublicKey{}, fmt.Errorf("make keys: %w", err)
	}
	text, err := secretText(secret, password)
	if err != nil {
		return PublicKey{}, fmt.Errorf("make keys: %w", err)
	}
	k := PublicKey{public}
	if err := writeNew(secretPath, text, 0o600); err != nil {
		return PublicKey{}, fmt.Errorf("make keys: %w", err)
	}
	line := fmt.Sprintf("untrusted comment: minisign public key %s\n%s\n", k.ID(), k)
	if err := writeNew(publicPath, []byte(line), 0o644); err != nil {
		return PublicKey{}, errors.Join(fmt.Errorf("make keys: %w", err), os.Remove(secretPath))
	}
	return k, nil
}

// secretText is the file of a secret key.
func secretText(key minisign.PrivateKey, password string) ([]byte, error) {
	if password != "" {
		text, err := minisign.EncryptKey(password, key)
		return append(text, '\n'), err
	}
	text, err := key.MarshalText()
	if err != nil {
		return nil, err
	}
	return checksummed(text)
}

// checksummed fills in the checksum of an unencrypted key, which the library leaves empty and minisign(1) looks at. The
// bytes are: algorithms (6), salt and limits (48), id and key (72), BLAKE2b of the algorithm, id and key (32).
func checksummed(text []byte) ([]byte, error) {
	const algorithm, body, checksum, size = 2, 54, 126, 158
	comment, encoded, _ := strings.Cut(string(text), "\n")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	if len(raw) != size || binary.LittleEndian.Uint16(raw) != minisign.EdDSA {
		return nil, fmt.Errorf("got a key of %d bytes, want %d", len(raw), size)
	}
	sum := blake2b.Sum256(append(append([]byte{}, raw[:algorithm]...), raw[body:checksum]...))
	copy(raw[checksum:], sum[:])
	return []byte(comment + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n"), nil
}

func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
