package sign

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pair makes keys without a password.
func pair(t *testing.T, dir, name string) (SecretKey, PublicKey) {
	t.Helper()
	public, err := Generate(filepath.Join(dir, name), "")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := OpenSecretKey(filepath.Join(dir, name+".key"), nobody(t))
	if err != nil {
		t.Fatal(err)
	}
	return secret, public
}

// nobody fails the test when a password is asked for.
func nobody(t *testing.T) func() (string, error) {
	return func() (string, error) {
		t.Error("a password was asked for")
		return "", nil
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVerifyTakesWhatWasSigned(t *testing.T) {
	dir := t.TempDir()
	secret, public := pair(t, dir, "a")
	_, other := pair(t, dir, "b")
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	path, err := Sign(file, secret, "release 1")
	if err != nil || path != file+Ending {
		t.Fatalf("got %s, %v", path, err)
	}
	s, err := Verify(file, path, other, public)
	if err != nil {
		t.Fatal(err)
	}
	if s.Comment != "release 1" || s.Legacy || s.KeyID != secret.ID() || s.Digest != "ab326f16dec533ba65139949246581c016b9d4c77d0de0046e65f48e575372a3" {
		t.Errorf("got %+v", s)
	}
	if reopened, err := OpenPublicKey(filepath.Join(dir, "a.pub")); err != nil || reopened.String() != public.String() {
		t.Errorf("a.pub: got %v, %v, want %v", reopened, err, public)
	}
	if reopened, err := OpenPublicKey(public.String()); err != nil || reopened.String() != public.String() {
		t.Errorf("%s: got %v, %v", public, reopened, err)
	}
}

// TestVerifyRefusesEveryFlippedBit changes each byte of a signed file and of its signature.
func TestVerifyRefusesEveryFlippedBit(t *testing.T) {
	dir := t.TempDir()
	secret, public := pair(t, dir, "a")
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	path, err := Sign(file, secret, "release 1")
	if err != nil {
		t.Fatal(err)
	}
	// The first line is nobody's word, and the last letter of a padded base64 text has bits that nobody reads.
	_, signed, _ := strings.Cut(read(t, path), "\n")
	first := len(read(t, path)) - len(signed)
	for _, target := range []struct {
		path string
		from int
	}{{file, 0}, {path, first}} {
		whole := read(t, target.path)
		for i := target.from; i < len(whole); i++ {
			if strings.HasPrefix(whole[i+1:], "=") && whole[i] != '=' {
				continue
			}
			changed := []byte(whole)
			changed[i] ^= 4
			write(t, target.path, string(changed))
			if s, err := Verify(file, path, public); err == nil {
				t.Errorf("%s with byte %d as %q instead of %q: it was verified as %+v", target.path, i, changed[i], whole[i], s)
			}
		}
		write(t, target.path, whole)
	}
	if _, err := Verify(file, path, public); err != nil {
		t.Error(err)
	}
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	secret, public := pair(t, dir, "a")
	otherSecret, other := pair(t, dir, "b")
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	path := file + Ending
	if _, err := Verify(file, path, public); !errors.Is(err, ErrUnsigned) {
		t.Errorf("no signature: got %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(file, pipe, public); err == nil || !strings.Contains(err.Error(), "pipe: got no plain file") {
		t.Errorf("a pipe for a signature: got %v", err)
	}
	if _, err := Sign(file, otherSecret, ""); err != nil {
		t.Fatal(err)
	}
	var unknown *unknownKeyError
	if _, err := Verify(file, path, public); !errors.As(err, &unknown) || unknown.Got != other.ID() || unknown.Want[0] != public.ID() {
		t.Errorf("another key: got %v", err)
	}
	if _, err := Sign(file, secret, ""); err != nil {
		t.Fatal(err)
	}
	good := read(t, path)
	for name, tt := range map[string]struct {
		file, signature, want string
	}{
		"another file":         {"the other", good, "wrong signature"},
		"another comment":      {"the package", strings.Replace(good, "timestamp:", "timestamp:1", 1), "wrong signature"},
		"no signature in it":   {"the package", "hello", "invalid signature"},
		"an endless signature": {"the package", strings.Repeat(good, 1000), "got more than 65536 bytes"},
	} {
		write(t, file, tt.file)
		write(t, path, tt.signature)
		_, err := Verify(file, path, public)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want %q in it", name, err, tt.want)
		}
		if (tt.want == "wrong signature") != errors.Is(err, errForged) {
			t.Errorf("%s: %v: forged is %v", name, err, errors.Is(err, errForged))
		}
	}
}

// TestHashIsNoText: a signature of a file's hash must not pass for one of a file that is that hash, nor the reverse.
func TestHashIsNoText(t *testing.T) {
	dir := t.TempDir()
	secret, public := pair(t, dir, "a")
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	path, err := Sign(file, secret, "")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(read(t, path), "\n")
	// RUQ… begins with ED and the key's id, RWQ… with Ed.
	if !strings.HasPrefix(lines[1], "RU") {
		t.Fatalf("got %s, want a signature of kind ED", lines[1])
	}
	lines[1] = "RW" + lines[1][2:]
	write(t, path, strings.Join(lines, "\n"))
	if _, err := Verify(file, path, public); !errors.Is(err, errForged) {
		t.Errorf("got %v, want ErrForged", err)
	}
}

func TestGenerateKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.pub"), "mine")
	if _, err := Generate(filepath.Join(dir, "a"), ""); err == nil || !strings.Contains(err.Error(), "a.pub is there") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "a.key")); err == nil {
		t.Error("a.key was made without its other half")
	}
	pair(t, dir, "b")
	if info, err := os.Stat(filepath.Join(dir, "b.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("b.key: got mode %v, %v, want it for its owner alone", info.Mode(), err)
	}
}

func TestOpenKeysRefuses(t *testing.T) {
	dir := t.TempDir()
	rubbish := write(t, filepath.Join(dir, "rubbish"), "hello\n")
	for _, of := range []string{rubbish, "RWrubbish", filepath.Join(dir, "none")} {
		if k, err := OpenPublicKey(of); err == nil {
			t.Errorf("%s: got key %s", of, k)
		}
		if k, err := OpenSecretKey(of, nobody(t)); err == nil {
			t.Errorf("%s: got key %s", of, k.ID())
		}
	}
	_, public := pair(t, dir, "a")
	if _, err := OpenSecretKey(filepath.Join(dir, "a.pub"), nobody(t)); err == nil {
		t.Errorf("%s was taken for a secret key", public)
	}
}

func TestCommentIsOneLine(t *testing.T) {
	dir := t.TempDir()
	secret, _ := pair(t, dir, "a")
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	if _, err := Sign(file, secret, "one\ntwo"); err == nil || !strings.Contains(err.Error(), "more than one line") {
		t.Errorf("got %v", err)
	}
}
