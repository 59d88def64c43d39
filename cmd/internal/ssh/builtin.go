package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/login"
)

// dialPatience bounds the making of a connection.
const dialPatience = 15 * time.Second

// builtIn logs in without OpenSSH's client: a command, or a shell in this terminal.
func (o Options) builtIn(ctx context.Context, h login.Host, private, command string) error {
	if len(o.Forwards) > 0 {
		return exit.Usagef("-L needs OpenSSH's client, and PATH has no ssh")
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		return fmt.Errorf("ssh key: %w", err)
	}
	pinned, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Key))
	if err != nil {
		return fmt.Errorf("key of %s: %w", h.Name, err)
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.Port)), &ssh.ClientConfig{
		User: "muster", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(pinned),
		HostKeyAlgorithms: []string{pinned.Type()}, Timeout: dialPatience,
	})
	if err != nil {
		return fmt.Errorf("log in to %s: %w", h.Name, err)
	}
	defer func() { _ = client.Close() }() // the session is over
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("log in to %s: %w", h.Name, err)
	}
	session.Stdin, session.Stdout, session.Stderr = o.Streams.In, console.Raw(o.Streams.Out), console.Raw(o.Streams.Err)
	in, out := console.Terminal(o.Streams.In), console.Terminal(o.Streams.Out)
	if (command == "" || o.Terminal) && in != nil && out != nil {
		restore, err := terminal(ctx, session, in, out)
		if err != nil {
			return err
		}
		defer restore()
	}
	if command != "" {
		err = session.Run(command)
	} else if err = session.Shell(); err == nil {
		err = session.Wait()
	}
	ended, ok := errors.AsType[*ssh.ExitError](err)
	switch {
	case !ok:
		return err
	case ended.Signal() != "":
		return exit.Silent{Code: 255} // as OpenSSH's client
	}
	return exit.Silent{Code: ended.ExitStatus()}
}

// terminal gives the session a terminal that is this one's.
func terminal(ctx context.Context, s *ssh.Session, in, out *os.File) (restore func(), err error) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err == nil {
		err = s.RequestPty(os.Getenv("TERM"), height, width, ssh.TerminalModes{})
	}
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("make the terminal raw: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			if width, height, err := term.GetSize(int(out.Fd())); err == nil {
				_ = s.WindowChange(height, width) // the session may be over
			}
		}
	}()
	return func() {
		cancel()
		signal.Stop(changed)
		_ = term.Restore(int(in.Fd()), before) // it was there before
	}, nil
}
