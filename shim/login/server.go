package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// Config is what a server is made from.
type Config struct {
	Host ssh.Signer // its own key
	// Admit says whose key it is, a line of authorized_keys; registry.ErrNoLogin: nobody may log in with it.
	Admit func(ctx context.Context, key string) (who string, err error)
	// Passwords are taken too, where Admit knows the key that NewPassword gives for one.
	Passwords bool
	// Exec runs a program beside the app; the context bounds its start only.
	Exec func(context.Context, status.ExecRequest) (status.Execution, error)
	// Dial connects with the rights of the process's user.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Program is muster's own program where the process finds it, which serves sftp there; "": no sftp.
	Program string
	Event   func(text string) // is told of each login, and of refused ones together
	Log     *slog.Logger
}

// What one client may take.
const (
	mostConnections = 64
	mostTries       = 6
	mostChannels    = 64 // of one connection
	patience        = 20 * time.Second
)

// version is what clients see of the server.
const version = "SSH-2.0-muster"

// Serve answers until ctx is done, and returns when all connections are closed.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l = status.Bounded(l, mostConnections)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Accept
	defer stop()
	s := &server{Config: c, refused: refusals{tell: c.Event}, lookups: newLookups(c.Admit)}
	defer s.refused.flush()
	defer s.work.Wait()
	defer cancel()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // it came too late
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("ssh server: %w", err)
		}
		s.work.Go(func() { s.serve(ctx, conn) })
	}
}

// server is one Serve.
type server struct {
	Config
	refused refusals
	lookups *lookups
	begun   atomic.Int64 // sessions so far
	work    sync.WaitGroup
}

// whoKey is where the permissions of a connection have whose key it showed, and printKey the key's fingerprint.
const (
	whoKey   = "who"
	printKey = "fingerprint"
)

// serve answers one connection until it is closed.
func (s *server) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends all that waits for it
	defer stop()
	defer func() { _ = conn.Close() }() // the client may have closed it
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = conn.SetDeadline(time.Now().Add(patience)) // fails when it is closed
	last := ""                                     // what was refused
	admit := func(key, shown string) (*ssh.Permissions, error) {
		who, err := s.lookups.admit(ctx, key)
		if err == nil {
			return &ssh.Permissions{Extensions: map[string]string{whoKey: who, printKey: shown}}, nil
		}
		last = shown
		if !errors.Is(err, registry.ErrNoLogin) {
			s.Log.Warn("ssh key not looked up", "err", err)
		}
		return nil, err
	}
	config := &ssh.ServerConfig{
		MaxAuthTries: mostTries, ServerVersion: version,
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return admit(line(key), ssh.FingerprintSHA256(key))
		},
	}
	if s.Passwords {
		config.PasswordCallback = func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			return admit(keyOfPassword(string(password)), "password")
		}
	}
	config.AddHostKey(s.Host)
	over, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		if last != "" {
			s.refused.add(conn.RemoteAddr(), last)
		}
		return
	}
	defer func() { _ = over.Close() }() // as above
	_ = conn.SetDeadline(time.Time{})   // fails when it is closed
	if known, ok := conn.(interface{ Known() }); ok {
		known.Known() // it is closed for nobody
	}
	c := &connection{
		server: s, conn: over,
		who: fmt.Sprintf("%s (%s) from %s", over.Permissions.Extensions[whoKey],
			over.Permissions.Extensions[printKey], hostOf(conn.RemoteAddr())),
		forwards: map[string]bool{},
	}
	c.serve(ctx, channels, requests)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// connection is that of a client who has logged in.
type connection struct {
	*server
	conn *ssh.ServerConn
	who  string

	mu       sync.Mutex
	forwards map[string]bool // addresses that were told of
	untold   int             // connections to other ones
	sessions int
}

// serve answers the client's requests until the connection is closed.
func (c *connection) serve(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	begun := time.Now()
	defer func() { c.tellEnd(time.Since(begun)) }()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { // asks whether the server is alive, and forwarding from here, get a no
		ssh.DiscardRequests(requests)
	})
	room := make(chan struct{}, mostChannels)
	for asked := range channels {
		select {
		case room <- struct{}{}:
		default:
			refuse(asked, ssh.ResourceShortage, fmt.Sprintf("%d channels are open", mostChannels))
			continue
		}
		work.Go(func() {
			defer func() { <-room }()
			c.open(ctx, asked)
		})
	}
}

func refuse(asked ssh.NewChannel, why ssh.RejectionReason, text string) {
	_ = asked.Reject(why, text) // fails when the client has hung up
}
