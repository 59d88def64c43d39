package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// socketVariable names the socket of the agent that a process belongs to.
const socketVariable = "MUSTER_STATUS_SOCKET"

func newRsh(s console.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "rsh [OPTION]... INSTANCE COMMAND [ARG]...", DisableFlagParsing: true, DisableFlagsInUseLine: true,
		Short: "Run a command in another instance of the gang, as ssh would on a host",
		Long: `mpirun starts the processes of other instances with this command. It asks the agent that this process
belongs to (MUSTER_STATUS_SOCKET), which asks the other instance's agent. The command is text for the
shell there, and runs with the environment and the user of that instance's process; this program exits
with its exit code. Refused unless the app's framework is mpi, horovod or cntk. Options of ssh are
accepted and ignored, except -n, which closes stdin.`,
		Example: "  muster rsh worker-1 hostname\n  mpirun --mca plm_rsh_agent 'muster rsh' hostname",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			return rsh(cmd.Context(), s, args)
		},
	}
}

// rshOrder is what a command line asks for.
type rshOrder struct {
	instance string
	text     string // for a shell
	noInput  bool
}

// sshValued are the options of ssh(1) that have a value.
const sshValued = "BbcDEeFIiJLlmOoPpQRSWw"

// parseRsh reads a command line as ssh does: options, then [USER@]HOST, then what the shell there is given.
func parseRsh(args []string) (o rshOrder, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for i, letter := range word[1:] {
			if letter == 'n' {
				o.noInput = true
			}
			if !strings.ContainsRune(sshValued, letter) {
				continue
			}
			if i+1 == len(word)-1 && len(args) > 0 { // its value is the next word
				args = args[1:]
			}
			break
		}
	}
	if len(args) < 2 {
		return o, exit.Usagef("rsh: got %d arguments, want INSTANCE COMMAND [ARG]...", len(args))
	}
	_, after, user := strings.Cut(args[0], "@")
	if o.instance = args[0]; user {
		o.instance = after
	}
	o.text = strings.Join(args[1:], " ")
	return o, nil
}

func rsh(ctx context.Context, s console.Streams, args []string) error {
	o, err := parseRsh(args)
	if err != nil {
		return err
	}
	socket := os.Getenv(socketVariable)
	if socket == "" {
		return exit.Usagef("rsh: %s is not set: only a process of an instance can reach the others", socketVariable)
	}
	c := status.Dial(socket)
	defer c.Close()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	signals, sizes := handOn(ctx, leave, nil, nil)
	ask := status.ExecRequest{Argv: []string{"sh", "-c", o.text}, Stdin: !o.noInput}
	x, err := c.ExecIn(ctx, o.instance, ask, status.ExecStreams{
		Stdin: s.In, Stdout: console.Raw(s.Out), Stderr: console.Raw(s.Err),
		Resize: sizes, Signals: signals,
	})
	if err == nil && x.Error != "" {
		err = errors.New(x.Error)
	}
	switch {
	case err != nil:
		return fmt.Errorf("rsh: %w", err)
	case x.Signal != 0:
		return exit.Silent{Code: 128 + x.Signal}
	case x.Code != 0:
		return exit.Silent{Code: x.Code}
	}
	return nil
}
