package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/ssh"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/login"
)

type sshFlags struct {
	ask         flags.Ask
	forwards    []string
	tty         bool
	config, key bool
}

func newSSH(s console.Streams) *cobra.Command {
	f := sshFlags{}
	cmd := &cobra.Command{
		Use: "ssh [flags] [APP/]INSTANCE [-- COMMAND [ARG]...] | --config APP | --key APP", DisableFlagsInUseLine: true,
		Short: "Log in to an instance whose app has muster.ssh=true, from any host",
		Long: `Logs in to the instance's ssh server, in its process's container and as its user, and runs the command
or a shell; exits with its exit code. One COMMAND is text for the shell there, more are its words. It
runs OpenSSH's client with a key of its own, which it permits in the app's registry for that time, and
with the key of the server pinned; where there is no ssh it is the client itself. That takes the right
to write the app's keys.

--config prints a configuration for ssh -F, scp, rsync and editors, with a key that is permitted until
the run ends; it is kept in ~/.config/muster/ssh/APP. --key prints that key.`,
		Example: `  muster ssh d1/worker-0
  muster ssh d1/worker-0                      -- nvidia-smi
  muster ssh -L 8888:localhost:8888 d1/worker-0
  muster ssh --config d1 >d1.ssh      # for ssh -F d1.ssh worker-0`,
		ValidArgsFunction: completeInstance(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), s, args)
		},
	}
	set := cmd.Flags()
	f.ask.Register(set)
	set.StringArrayVarP(&f.forwards, "forward", "L", nil,
		"[BIND:]PORT:HOST:HOSTPORT: connections to PORT here go to HOST:HOSTPORT there; repeatable")
	set.BoolVarP(&f.tty, "tty", "t", false, "give a command a terminal (a shell has one)")
	set.BoolVar(&f.config, "config", false, "print a configuration of ssh for all instances of APP")
	set.BoolVar(&f.key, "key", false, "print a private key for all instances of APP")
	return cmd
}

func (f *sshFlags) run(ctx context.Context, s console.Streams, args []string) error {
	switch {
	case f.config && f.key:
		return exit.Usagef("ssh: got --config and --key, want one of them")
	case (f.config || f.key) && len(args) != 1:
		return exit.Usagef("ssh: got %d arguments, want APP", len(args))
	case len(args) == 0:
		return exit.Usagef("ssh: got no argument, want [APP/]INSTANCE [-- COMMAND [ARG]...]")
	}
	k, err := f.ask.Lookup(args[0], s.Err)
	if err != nil {
		return err
	}
	o := ssh.Options{Lookup: k, Streams: s, Forwards: f.forwards, Terminal: f.tty}
	text := ""
	switch {
	case f.config:
		text, err = o.Config(ctx, args[0])
	case f.key:
		text, err = o.Key(ctx, args[0])
	default:
		// a signal ends the login, and takes its key back
		ctx, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer end()
		return o.Login(ctx, args[0], args[1:])
	}
	if err == nil {
		_, err = fmt.Fprint(s.Out, text)
	}
	return err
}

// newLogin is what an instance's ssh server runs in the container.
func newLogin() *cobra.Command {
	return &cobra.Command{
		Use: login.Verb + " sftp", Hidden: true, Args: exactly("sftp"),
		Short: "Serve sftp for the ssh server of this instance, at stdin and stdout",
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] != "sftp" {
				return exit.Usagef("%s: got %q, want sftp", login.Verb, args[0])
			}
			return login.ServeSFTP(os.Stdin, os.Stdout)
		},
	}
}
