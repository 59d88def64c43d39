// Muster is the agent and its command line: wiring only. Each verb has a file of its own name.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/sandbox"
)

func main() {
	sandbox.Init() // enters a container, if this process was started for one
	os.Exit(Main())
}

// Main runs the command line of this process and returns its exit code.
func Main() int {
	s := console.Streams{In: os.Stdin, Out: console.Printable(os.Stdout), Err: console.Printable(os.Stderr)}
	args, err := mask.Take(mask.Arguments()[1:])
	if err != nil {
		fmt.Fprintln(s.Err, message(err))
		return exit.Internal
	}
	if verb := linkedAs(os.Args[0]); verb != "" {
		args = append([]string{verb}, args...)
	}
	// The root of all contexts: signals reach the agent as events.
	return execute(context.Background(), args, s)
}

// linkedAs is the verb of a link to this program that bears another system's name, so that scripts that call
// $HBOX_HOME/bin/hbox-submit, xl-submit or slider run as they are; empty: called by another name. A copy is muster
// under any name: agents are started by their program's own path.
func linkedAs(name string) string {
	if program, err := os.Executable(); err != nil || filepath.Base(program) == filepath.Base(name) {
		return ""
	}
	switch called := filepath.Base(name); called {
	case "hbox-submit", "slider":
		return called
	case "xl-submit":
		return "hbox-submit"
	}
	return ""
}

func execute(ctx context.Context, args []string, s console.Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := exit.CodeOf(err)
	var silent exit.Silent
	if err != nil && !errors.As(err, &silent) {
		fmt.Fprintln(s.Err, message(err))
	}
	return code
}

// message is what a person reads: problems stand alone, anything else says who speaks.
func message(err error) string {
	if problems, ok := errors.AsType[appdef.Problems](err); ok {
		return problems.Error()
	}
	text := "muster: " + err.Error()
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	file, of := errors.AsType[*fs.PathError](err)
	if full && of && file.Path != os.Stdout.Name() && !strings.Contains(text, "; ") {
		text += "; free some on that file system (df -h), or name a folder on another (--work-dir, --state-dir)"
	}
	return text
}
