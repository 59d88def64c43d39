package sign

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// minisignProgram is the real program, as scripts/lab/minisign unpacked it.
type minisignProgram struct{ path, libraries string }

func findMinisign(t *testing.T) minisignProgram {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(base, "muster", "*-minisign-*", "usr", "bin", "minisign"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		need.Skip(t, "no minisign under "+base+" (make it with scripts/lab/minisign path)")
	}
	at := filepath.Dir(filepath.Dir(found[0]))
	libraries, err := filepath.Glob(filepath.Join(at, "lib", "*-linux-gnu*"))
	if err != nil {
		t.Fatal(err)
	}
	return minisignProgram{found[0], strings.Join(libraries, ":")}
}

func (m minisignProgram) run(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), m.path, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+m.libraries)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (m minisignProgram) must(t *testing.T, input string, args ...string) {
	t.Helper()
	if out, err := m.run(t, input, args...); err != nil {
		t.Fatalf("minisign %v: %v\n%s", args, err, out)
	}
}

// TestMinisignTakesOurs: minisign verifies what we have signed, and signs with our keys.
func TestMinisignTakesOurs(t *testing.T) {
	program := findMinisign(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	passwords := []string{""}
	if !underRace {
		passwords = append(passwords, "correct horse")
	}
	for _, password := range passwords {
		prefix := filepath.Join(dir, "key"+password)
		public, err := Generate(prefix, password)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := OpenSecretKey(prefix+".key", func() (string, error) { return password, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Sign(file, secret, "release 1"); err != nil {
			t.Fatal(err)
		}
		out, err := program.run(t, "", "-V", "-H", "-p", prefix+".pub", "-m", file)
		if err != nil || !strings.Contains(out, "Trusted comment: release 1") {
			t.Errorf("password %q: minisign -V: %v\n%s", password, err, out)
		}
		if out, err := program.run(t, "", "-V", "-P", public.String(), "-m", file); err != nil {
			t.Errorf("password %q: minisign -V -P: %v\n%s", password, err, out)
		}
		program.must(t, password+"\n", "-S", "-s", prefix+".key", "-m", file, "-t", "by the program")
		if s, err := Verify(file, file+Ending, public); err != nil || s.Comment != "by the program" {
			t.Errorf("password %q: got %+v, %v", password, s, err)
		}
		write(t, file, "another package")
		if out, err := program.run(t, "", "-V", "-p", prefix+".pub", "-m", file); err == nil {
			t.Errorf("minisign took another file:\n%s", out)
		}
		write(t, file, "the package")
	}
}

// TestWeTakeMinisigns: keys and signatures of both kinds that the program made.
func TestWeTakeMinisigns(t *testing.T) {
	program := findMinisign(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "app.zip"), "the package")
	key, pub := filepath.Join(dir, "m.key"), filepath.Join(dir, "m.pub")
	program.must(t, "", "-G", "-W", "-s", key, "-p", pub)
	public, err := OpenPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		args   []string
		legacy bool
	}{{nil, false}, {[]string{"-l"}, true}} {
		program.must(t, "", append([]string{"-S", "-s", key, "-m", file, "-t", "from Debian"}, kind.args...)...)
		s, err := Verify(file, file+Ending, public)
		if err != nil || s.Legacy != kind.legacy || s.Comment != "from Debian" {
			t.Errorf("legacy %v: got %+v, %v", kind.legacy, s, err)
		}
		write(t, file, "the packagf")
		if _, err := Verify(file, file+Ending, public); !errors.Is(err, errForged) {
			t.Errorf("legacy %v, one bit flipped: got %v", kind.legacy, err)
		}
		write(t, file, "the package")
	}
	secret, err := OpenSecretKey(key, nobody(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(file, secret, ""); err != nil {
		t.Fatal(err)
	}
	program.must(t, "", "-V", "-H", "-p", pub, "-m", file)
}
