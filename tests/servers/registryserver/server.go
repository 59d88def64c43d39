// Package registryserver starts real image registries for tests, on 127.0.0.1, and puts images into them. Enters a test
// and its wishes; leaves a registry that answers and is gone when the test ends, however it ends. The binary is
// Debian's docker-registry, from `scripts/lab/registry build`; without it, and with -short, the test is skipped
// (package need).
package registryserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/ports"

	"github.com/muster-agent/muster/tests/child"

	"github.com/muster-agent/muster/tests/need"
)

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 30 * time.Second

// Login is a user of a registry that asks for one. The password is one of those that hashes has.
type Login struct{ User, Password string }

// hashes are bcrypt hashes of the passwords that tests use, at the lowest cost: the registry takes nothing else. Any
// htpasswd makes more of them.
var hashes = map[string]string{
	"lovelace":  "$2a$04$HWf6d0ywOAwRY.tc7502SegujTIb7CmoNuuWNgkFVGHA8DBDEh5TW",
	"l0ve:lace": "$2a$04$tYm8lelJw5jzWFHD7MueXu0ETY2Pv.SZxhC9TkMJmDrajVirZ3YDa",
}

// Options are a test's wishes; the zero value is a registry open to everybody.
type Options struct {
	// Login, when set, is the only user; requests without it are answered with 401.
	Login *Login
}

// Server is one registry.
type Server struct {
	// Addr is HOST:PORT, the host of an image's name.
	Addr string
	// Dir holds `storage/`, `config.yml` and `registry.log`.
	Dir string

	t     testing.TB
	login *Login
	run   *child.Process // nil once it has been stopped
}

// Start starts a registry with the given wishes and returns once it answers.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real registry: not with -short")
	}
	if _, err := Binary(); err != nil {
		need.Skip(t, err.Error())
	}
	s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", ports.Claim(t, 1)[0]), Dir: t.TempDir(), t: t, login: o.Login}
	if err := s.configure(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	s.Restart()
	return s
}

// Binary is the registry to start: MUSTER_REGISTRY, else what `scripts/lab/registry build` left in the cache. The error
// says what to do when it is not there.
func Binary() (string, error) {
	path := os.Getenv("MUSTER_REGISTRY")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(cache, "muster", "docker-registry", "usr", "bin", "docker-registry")
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("no image registry at %s (get it with scripts/lab/registry build): %w", path, err)
	}
	return path, nil
}

// Ref is the name of an image in this registry: NAME[:TAG].
func (s *Server) Ref(name string) string { return s.Addr + "/" + name }

// Stop ends the registry and waits until it is gone; its storage stays. On a stopped one it does nothing.
func (s *Server) Stop() {
	s.t.Helper()
	if s.run == nil {
		return
	}
	err := s.run.End(syscall.SIGTERM, watchdog)
	s.run = nil
	if err != nil {
		s.t.Fatalf("registry at %s: %v", s.Addr, err)
	}
}

// Restart starts the registry on the same address with the same storage, stopping it before if it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	binary, err := Binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", filepath.Join(s.Dir, "config.yml"))
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if s.run, err = child.StartLogged(cmd, filepath.Join(s.Dir, "registry.log")); err != nil {
		s.t.Fatalf("start %s: %v", binary, err)
	}
	if err := s.ready(); err != nil {
		s.t.Fatalf("registry at %s: %v; the end of its log:\n%s", s.Addr, err, s.logTail())
	}
}

func (s *Server) configure() error {
	config := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %q}, delete: "+
		"{enabled: true}}\nhttp: {addr: %q}\n",
		filepath.Join(s.Dir, "storage"), s.Addr)
	if s.login != nil {
		hash, ok := hashes[s.login.Password]
		if !ok {
			return fmt.Errorf("password %q: no hash of it is kept", s.login.Password)
		}
		users := filepath.Join(s.Dir, "htpasswd")
		if err := os.WriteFile(users, fmt.Appendf(nil, "%s:%s\n", s.login.User, hash), 0o600); err != nil {
			return err
		}
		config += fmt.Sprintf("auth: {htpasswd: {realm: lab, path: %q}}\n", users)
	}
	return os.WriteFile(filepath.Join(s.Dir, "config.yml"), []byte(config), 0o600)
}

// end is the clean-up: it neither fails nor leaves anything.
func (s *Server) end() {
	if s.run == nil {
		return
	}
	if s.t.Failed() {
		s.t.Logf("the end of %s:\n%s", filepath.Join(s.Dir, "registry.log"), s.logTail())
	}
	_ = s.run.End(syscall.SIGKILL, watchdog)
	s.run = nil
}

func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		if last = s.probe(ctx); last == nil {
			return nil
		}
		select {
		case <-s.run.Gone:
			return errors.New("ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", watchdog, last)
		case <-poll.C:
		}
	}
}

func (s *Server) probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/v2/", nil)
	if err != nil {
		return err
	}
	req.Close = true
	if s.login != nil {
		req.SetBasicAuth(s.login.User, s.login.Password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func (s *Server) logTail() string {
	const most = 4 << 10
	b, err := os.ReadFile(filepath.Join(s.Dir, "registry.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}
