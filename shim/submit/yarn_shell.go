package submit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// YARNShell runs a script of room render that submits to YARN's distributed shell, by Hadoop's own client: HADOOP_HOME is set,
// and `yarn` in the PATH or below it.
type YARNShell struct {
	*ResourceManager
	Script string
	// Applications is how many of them the script submits.
	Applications int

	ids []string
}

// submitted is what the client's log says.
var submitted = regexp.MustCompile(`Submitted application (application_\d+_\d+)`)

// Start runs the script until all applications are submitted, and returns their ids with commas between them. They run
// without their clients, which only look on.
func (y *YARNShell) Start(ctx context.Context) (id string, err error) {
	cmd := exec.CommandContext(ctx, "bash", "-s")
	cmd.Stdin = strings.NewReader(y.Script)
	cmd.Env = os.Environ()
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH")+":"+home+"/bin")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the clients are its children
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = end
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer read.Close() // nothing was written to it
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	_ = write.Close() // the children have it
	if err != nil {
		return "", fmt.Errorf("bash: %w: %w", ErrUnreachable, err)
	}
	var said []string
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	for len(y.ids) < y.Applications && lines.Scan() {
		said = append(said, lines.Text())
		if m := submitted.FindStringSubmatch(lines.Text()); m != nil && !slices.Contains(y.ids, m[1]) {
			y.ids = append(y.ids, m[1])
		}
	}
	_ = end() // it has ended, or is of no more use
	err = cmd.Wait()
	if len(y.ids) == y.Applications {
		return strings.Join(y.ids, ","), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if len(said) > mostLines {
		said = said[len(said)-mostLines:]
	}
	err = fmt.Errorf("yarn: distributed shell: %w: %w%s", ErrRefused, err, after(": ", oneLine(strings.Join(said, " "))))
	for _, one := range y.ids { // a part of a gang waits for the others for nothing
		err = errors.Join(err, y.kill(context.WithoutCancel(ctx), one))
	}
	return "", err
}

// mostLines of what the client said are told when it did not submit.
const mostLines = 8

// State puts those of all applications together.
func (y *YARNShell) State(ctx context.Context) (State, error) {
	states := make([]State, len(y.ids))
	errs := make([]error, len(y.ids))
	if err := y.open(ctx); err != nil {
		return State{}, err
	}
	var wg sync.WaitGroup
	for i, id := range y.ids {
		wg.Go(func() { states[i], errs[i] = y.application(ctx, id) })
	}
	wg.Wait()
	return together(states), errors.Join(errs...)
}

// together is over when all are, and good when all are.
func together(states []State) State {
	all := State{Over: true, OK: true}
	var words, whys []string
	for _, s := range states {
		all.Over, all.OK = all.Over && s.Over, all.OK && s.OK
		if !slices.Contains(words, s.Word) {
			words = append(words, s.Word)
		}
		if s.Why != "" && !slices.Contains(whys, s.Why) {
			whys = append(whys, s.Why)
		}
	}
	all.Word, all.Why = strings.Join(words, ", "), strings.Join(whys, "; ")
	return all
}

// Stop has YARN kill the applications.
func (y *YARNShell) Stop(ctx context.Context) error {
	var errs []error
	for _, id := range y.ids {
		errs = append(errs, y.kill(ctx, id))
	}
	return errors.Join(errs...)
}

// Hints are the launcher's own commands that follow the job and end it.
func (y *YARNShell) Hints() (follow, end string) {
	var status, kill []string
	for _, id := range y.ids {
		status, kill = append(status, "yarn application -status "+id), append(kill, "yarn application -kill "+id)
	}
	return strings.Join(status, "; "), strings.Join(kill, "; ")
}
