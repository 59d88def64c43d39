package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef/shellwords"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/login"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wording"
)

// Options are those of a login.
type Options struct {
	Lookup   apps.Lookup
	Streams  console.Streams
	Forwards []string // [BIND:]PORT:HOST:HOSTPORT, as ssh -L
	Terminal bool     // also for a command
}

// Login logs in to the instance that a word names, and runs a command there; none: a shell. Its exit code is the
// error's.
func (o Options) Login(ctx context.Context, word string, command []string) error {
	t, err := o.Lookup.Target(word, false)
	if err != nil {
		return err
	}
	known, err := o.find(ctx, t.App)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known.hosts, func(h login.Host) bool { return h.Name == t.Instance.String() })
	if i < 0 {
		return known.missing(t.Instance.String())
	}
	dir, err := os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "muster-ssh-")
	if err != nil {
		return fmt.Errorf("folder for the login: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is of no use: the key is revoked
	private, revoke, err := known.permit(ctx, "")
	if err != nil {
		return err
	}
	defer revoke()
	text := ""
	if len(command) == 1 {
		text = command[0] // for a shell
	} else if len(command) > 1 {
		text = shellwords.Text(command)
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return o.builtIn(ctx, known.hosts[i], private, text)
	}
	if err := write(dir, known.hosts, private); err != nil {
		return err
	}
	args := []string{"-F", filepath.Join(dir, login.ConfigFile)}
	for _, forward := range o.Forwards {
		args = append(args, "-L", forward)
	}
	switch {
	case o.Terminal:
		args = append(args, "-tt")
	case console.Terminal(o.Streams.In) == nil: // else ssh wants one for a shell, and says that it gets none
		args = append(args, "-T")
	}
	args = append(args, known.hosts[i].Name)
	if text != "" {
		args = append(args, text)
	}
	client := exec.CommandContext(ctx, program, args...)
	client.Stdin, client.Stdout, client.Stderr = o.Streams.In, console.Raw(o.Streams.Out), console.Raw(o.Streams.Err)
	client.Cancel = func() error { return client.Process.Signal(syscall.SIGTERM) }
	client.WaitDelay = time.Second // stdin may be somebody's who says no more
	err = client.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() >= 0 {
		return exit.Silent{Code: ended.ExitCode()}
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// Config writes a configuration for other programs, and the key and the hosts' keys beside it, into a folder of the
// user's. It returns the configuration.
func (o Options) Config(ctx context.Context, app string) (string, error) {
	_, dir, err := o.keep(ctx, app)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, login.ConfigFile))
	return string(text), err
}

// Key is the private key that Config writes.
func (o Options) Key(ctx context.Context, app string) (string, error) {
	private, _, err := o.keep(ctx, app)
	return private, err
}

// keep permits the key in the user's folder, or a new one, for the app's run.
func (o Options) keep(ctx context.Context, app string) (private, dir string, err error) {
	known, err := o.find(ctx, app)
	if err != nil {
		return "", "", err
	}
	if len(known.hosts) == 0 {
		return "", "", known.missing("")
	}
	own, err := os.UserConfigDir()
	if err != nil {
		return "", "", fmt.Errorf("folder for ssh: %w", err)
	}
	dir = filepath.Join(own, "muster", "ssh", app)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("folder for ssh: %w", err)
	}
	before, err := os.ReadFile(filepath.Join(dir, login.KeyFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", fmt.Errorf("key of ssh: %w", err)
	}
	if private, _, err = known.permit(ctx, string(before)); err != nil {
		return "", "", err
	}
	for i := range known.hosts {
		known.hosts[i].Aliases = []string{app + "-" + known.hosts[i].Name}
	}
	return private, dir, write(dir, known.hosts, private)
}

// write writes the files of a client.
func write(dir string, hosts []login.Host, private string) error {
	texts := login.Files(dir, hosts)
	texts[login.KeyFile] = private
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			return fmt.Errorf("write for ssh: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("write for ssh: %w", err)
		}
	}
	return nil
}

// found is what the registry knows of an app's ssh servers.
type found struct {
	by      string // who asks
	app     string
	run     string
	address registry.Address
	hosts   []login.Host
	others  []string // live instances without a server
}

func (o Options) find(ctx context.Context, app string) (found, error) {
	f, err := o.Lookup.App(ctx, app)
	if err != nil {
		return found{}, err
	}
	if err := f.Over(); err != nil {
		return found{}, err
	}
	if f.Registry == nil {
		return found{}, f.NoRegistry("who may log in stands there")
	}
	out := found{by: cmp.Or(o.Lookup.Who, apps.Asker()), app: app, run: f.Registry.App.Run, address: f.Address}
	for _, m := range f.Registry.Members {
		port := plan.LoginPort(m.Ports)
		switch {
		case !m.Live || m.Run != out.run:
		case port == 0:
			out.others = append(out.others, m.Instance.String())
		default:
			host, err := login.HostOf(f.Registry.App.Token, app, m.Instance.String(), m.Addr, port)
			if err != nil {
				return found{}, err
			}
			out.hosts = append(out.hosts, host)
		}
	}
	return out, nil
}

// missing says why an instance cannot be logged in to; "": none can.
func (f found) missing(instance string) error {
	var names []string
	for _, h := range f.hosts {
		names = append(names, h.Name)
	}
	switch {
	case instance == "" && len(f.others) == 0:
		return exit.Usagef("%s has no instance that runs: muster status %[1]s says how it stands", f.app)
	case instance == "", slices.Contains(f.others, instance):
		return exit.Usagef("%s has no ssh server: muster.ssh was not true when it was started "+
			"(--set muster.ssh=true), or the policy of its host forbids servers (ssh: false); muster exec needs none",
			strings.TrimSuffix(f.app+"/"+instance, "/"))
	}
	return exit.Usagef("%s/%s does not run; instances with an ssh server are: %s", f.app, instance,
		wording.OrNone(names))
}

// permit permits the public half of a key, or of a new one, in the app's registry.
func (f found) permit(ctx context.Context, before string) (private string, revoke func(), err error) {
	private = before
	public, err := login.PublicOf(private)
	if before == "" || err != nil {
		if private, public, err = login.NewKey(f.by); err != nil {
			return "", nil, err
		}
	}
	c, err := apps.Open(f.address)
	if err != nil {
		return "", nil, err
	}
	undo, err := c.Permit(ctx, f.app, registry.Login{Run: f.run, Key: public, By: f.by})
	if err != nil {
		c.Close()
		return "", nil, apps.RegistryError(f.address, err)
	}
	return private, func() { undo(); c.Close() }, nil
}
