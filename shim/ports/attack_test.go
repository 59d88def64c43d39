package ports

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/hostlock"
)

// Another user's process that has bound the name of every port's announcement keeps nobody from a port: what nobody has
// announced is chosen first, then what can be bound.
func TestAttackAllPortsAnnounced(t *testing.T) {
	r := ranges(t, "28700-28703")
	announced := map[int]bool{}
	for _, n := range r.numbers()[:3] {
		announced[n] = true
		bindName(t, n)
	}
	free := held(t, r, []Want{{Name: "first"}}, nil)
	if got := free.Ports()["first"]; announced[got] {
		t.Errorf("took %d, which is announced, though another was not", got)
	}
	rest := held(t, r, []Want{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil)
	if len(rest.Ports()) != 3 {
		t.Errorf("got %v", rest.Ports())
	}
	if h, err := Claim(r, []Want{{Name: "none"}}, nil); !errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), hostlock.ErrHeld.Error()) {
		t.Errorf("a fifth of four: got %v, %v", h, err)
	}
}

// bindName binds the name without listening, so that the kernel does not tell who did: it is nobody's lock.
func bindName(t *testing.T, port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@muster/" + lockName(port)}); err != nil {
		t.Fatal(err)
	}
}
