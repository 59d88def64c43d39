package shim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/login"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

// sshServer is the ssh server of one instance, and the way of its process to those of the others. Who may log in stands
// in the registry, where only who may write the app's keys can write it: each instance permits itself.
type sshServer struct {
	sshConfig

	private string // the instance's own key, as a client; "": it has none
	revoke  func() // of that key

	turn sync.Mutex
	stop func() // of the server; nil: none runs
}

// sshConfig is what an sshServer is made from.
type sshConfig struct {
	plan     plan.Plan
	app, run string
	instance registry.Instance
	host     string // that peers reach this one at
	policy   policy.Policy
	token    func() string // of the run
	client   *consul.Client
	ports    *ports.Instance
	user     files.User // whom the process runs as
	exec     func(context.Context, status.ExecRequest) (status.Execution, error)
	journal  *journal.Journal
	hide     func(string) string
	log      *slog.Logger
}

// warnLogin is the kind of a warning about the server.
const warnLogin = "ssh"

// open starts the server, where the plan has one and the operator permits it. An instance without it runs all the same.
func (l *sshServer) open(ctx context.Context) {
	if l.plan.Login == nil {
		return
	}
	if !l.policy.PermitsSSH() {
		l.journal.Warn(warnLogin, fmt.Sprintf("no ssh server: %s has ssh: false", l.policy.File))
		return
	}
	l.permitOwn(ctx)
	l.serve(ctx)
}

// permitOwn makes the key with which the process logs in to other instances.
func (l *sshServer) permitOwn(ctx context.Context) {
	private, public, err := login.NewKey(l.app + "/" + l.instance.String())
	if err == nil {
		var revoke func()
		revoke, err = l.client.Permit(ctx, l.app, registry.Login{
			Run: l.run, Key: public, By: l.instance.String(),
		})
		if err == nil {
			l.private, l.revoke = private, revoke
			return
		}
	}
	l.journal.Warn(warnLogin, fmt.Sprintf("this instance cannot log in to others: %v", err))
}

// serve answers at the plan's port until close.
func (l *sshServer) serve(ctx context.Context) {
	key, err := login.HostKey(l.token(), l.app, l.instance.String())
	var at net.Listener
	if err == nil {
		at, err = l.ports.Listen(l.plan.Login.Port, l.host)
	}
	if err != nil {
		l.journal.Warn(warnLogin, fmt.Sprintf("no ssh server: %v", err))
		return
	}
	l.journal.Mended(warnLogin, "the ssh server answers")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the staging
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := login.Serve(ctx, at, login.Config{
			Host: key, Admit: l.admit, Passwords: l.plan.Login.Password, Exec: l.exec, Dial: l.dial,
			Program: path.Join(l.plan.Process.Folder, plan.Program),
			Event:   func(text string) { l.journal.Event(eventLogin, l.hide(text), time.Now()) },
			Log:     l.log,
		})
		if err != nil {
			l.log.Warn("ssh server failed", "err", err)
		}
	}()
	l.log.Info("ssh server", "address", at.Addr().String())
	l.turn.Lock()
	defer l.turn.Unlock()
	l.stop = func() { cancel(); <-done }
}

// eventLogin is the event of who has logged in, and of who was refused.
const eventLogin = "login"

// admit says who may log in with a key.
func (l *sshServer) admit(ctx context.Context, key string) (who string, err error) {
	permitted, err := l.client.Permitted(ctx, l.app, l.run, key)
	return permitted.By, err
}

// dialPatience bounds the making of a connection that a client forwards.
const dialPatience = 10 * time.Second

// dial connects with the rights of the process's user, as programs of this host see them.
func (l *sshServer) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, ip := range found { // one at a time: for several, goroutines would dial with the agent's rights
		failed := l.user.Do(func() (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip.Unmap().String(), port))
			return err
		})
		if failed == nil {
			return conn, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, err
}

// Moved has the server answer at the plan's new port.
func (l *sshServer) Moved(ctx context.Context) {
	l.halt()
	l.serve(ctx)
}

// close ends the server, and takes the instance's own key back.
func (l *sshServer) close() {
	l.halt()
	if l.revoke == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.revoke()
	}()
	select {
	case <-done:
	case <-time.After(revokePatience): // a registry that is away keeps no agent from its end
	}
}

// revokePatience bounds the taking back of the instance's own key.
const revokePatience = time.Second

func (l *sshServer) halt() {
	l.turn.Lock()
	stop := l.stop
	l.stop = nil
	l.turn.Unlock()
	if stop != nil {
		stop()
	}
}

// Hosts adds to a start the instances of the roster as hosts of ssh, and programs that know them.
func (l *sshServer) Hosts(start *plan.Start, roster registry.Roster) {
	if l.private == "" {
		return
	}
	var hosts []login.Host
	for _, row := range roster.Rows {
		port := plan.LoginPort(row.Ports)
		if port == 0 {
			continue
		}
		host, err := login.HostOf(l.token(), l.app, row.Instance.String(), plan.Hosts([]registry.Row{row})[0], port)
		if err != nil {
			l.log.Warn("instance not known to ssh", "instance", row.Instance.String(), "err", err)
			continue
		}
		hosts = append(hosts, host)
	}
	folder := path.Join(l.plan.Process.Folder, plan.LoginFolder)
	for name, text := range login.Files(folder, hosts) {
		start.Files[path.Join(plan.LoginFolder, name)] = text
	}
	start.Files[plan.LoginKey] = l.private
	for _, program := range []string{"ssh", "scp", "sftp"} {
		start.Files[path.Join(plan.LoginPrograms, program)] = login.Wrapper(folder)
	}
	start.Env["MUSTER_SSH_CONFIG"] = path.Join(folder, login.ConfigFile)
	if before := start.Env["PATH"]; before != "" {
		start.Env["PATH"] = path.Join(l.plan.Process.Folder, plan.LoginPrograms) + ":" + before
	}
}
