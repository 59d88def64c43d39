package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// shellClient runs a rendered script that submits to YARN's distributed shell, with Hadoop's own client: HADOOP_HOME is
// set, and `yarn` is in the PATH or below it.
type shellClient struct {
	*restClient
	Script string
	// Applications are the names of those that the script submits.
	Applications []string

	Patience time.Duration // until all are submitted; 0: shellPatience
	ids      []string
}

// shellPatience is how long a script may take until all its applications are submitted: it fetches the agents'
// binary, and starts a client for each.
const shellPatience = 5 * time.Minute

// submitted is what the client's log says.
var submitted = regexp.MustCompile(`Submitted application (application_\d+_\d+)`)

// Start runs the script until all applications are submitted, and returns their ids with commas between them. They
// run without their clients, which only look on. Where the clients do not say the ids, for a site sends their log
// elsewhere, the ResourceManager is asked for applications of those names that were not there before: they are taken
// for ours where the script has not failed and each name has one alone, for another user may submit under them at
// the same time. Only what our own clients have told of is killed.
func (y *shellClient) Start(ctx context.Context) (id string, err error) {
	before, unlisted := y.named(ctx)
	said, err := y.run(ctx)
	late := context.WithoutCancel(ctx)
	// It follows its applications, as far as can be told.
	slow := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	var found map[string]string
	if len(y.ids) < len(y.Applications) && unlisted == nil {
		found, unlisted = y.find(late, before)
		if (err == nil || slow) && y.claim(found) {
			return strings.Join(y.ids, ","), nil
		}
	}
	if len(y.ids) == len(y.Applications) && ctx.Err() == nil {
		return strings.Join(y.ids, ","), nil
	}
	var left []error
	for _, one := range y.ids { // a part of a gang waits for the others for nothing
		left = append(left, y.kill(late, one))
	}
	if len(found) > 0 {
		left = append(left, fmt.Errorf("applications of its name that were not there before, and may be another "+
			"user's: %s", strings.Join(slices.Sorted(maps.Keys(found)), ", ")))
	}
	ended := err // by itself
	switch {
	case ctx.Err() != nil:
		ended, err = nil, ctx.Err()
	case slow:
		ended, err = nil, fmt.Errorf("yarn: distributed shell: %w: not all is submitted after %s%s",
			job.ErrRefused, cmp.Or(y.Patience, shellPatience), job.After(": ", said))
	default:
		err = fmt.Errorf("yarn: distributed shell: %w: %w%s", job.ErrRefused, cmp.Or(err, errSilent), job.After(": ",
			said))
	}
	if stays := errors.Join(left...); stays != nil || unlisted != nil && ended == nil {
		return "", fmt.Errorf("%w: %s", job.ErrUnknown, job.OneLine(errors.Join(stays, unlisted, err).Error()))
	}
	return "", err
}

// errSilent is a script that ends well, and leaves no application that anybody knows of.
var errSilent = errors.New("it tells of no application")

// run runs the script until it has said all ids, has ended, or its time is over, and gives the end of what it said.
// What it keeps in a temporary folder goes with it: it is not waited for until it does that by itself.
func (y *shellClient) run(ctx context.Context) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(y.Patience, shellPatience))
	defer cancel()
	dir, err := os.MkdirTemp("", "muster-yarn-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // a temporary folder stays at worst
	cmd := exec.CommandContext(ctx, "bash", "-s")
	cmd.Stdin = strings.NewReader(y.Script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HADOOP_ROOT_LOGGER=INFO,console") // the ids are in the client's log
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
		return "", fmt.Errorf("bash: %w", err)
	}
	// A child that has left the group may hold the output.
	defer context.AfterFunc(ctx, func() { _ = read.SetReadDeadline(time.Now().Add(job.Grace)) })()
	lines := y.listen(read)
	_ = end() // it has ended, or is of no more use
	err = cmd.Wait()
	_ = read.SetReadDeadline(time.Now().Add(job.Grace))
	_, _ = io.Copy(io.Discard, read) // until the last of them has gone: its folder does
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return job.OneLine(strings.Join(lines, " ")), err
}

// listen reads until all ids are said, and gives the last lines.
func (y *shellClient) listen(read io.Reader) (said []string) {
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	for len(y.ids) < len(y.Applications) && lines.Scan() {
		said = append(said, lines.Text())
		said = said[max(0, len(said)-mostLines):]
		if m := submitted.FindStringSubmatch(lines.Text()); m != nil && !slices.Contains(y.ids, m[1]) {
			y.ids = append(y.ids, m[1])
		}
	}
	return said
}

// named are the user's applications of our names, by their ids.
func (y *shellClient) named(ctx context.Context) (map[string]string, error) {
	if err := y.open(ctx); err != nil {
		return nil, err
	}
	var answer struct {
		Apps struct {
			App []struct{ ID, Name string }
		}
	}
	if err := y.api.Call(ctx, http.MethodGet,
		"/ws/v1/cluster/apps?applicationTypes=YARN&user="+url.QueryEscape(y.User), nil, &answer); err != nil {
		return nil, fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	}
	all := map[string]string{}
	for _, one := range answer.Apps.App {
		if slices.Contains(y.Applications, one.Name) {
			all[one.ID] = one.Name
		}
	}
	return all, nil
}

// find gives those that were not there before and that nobody has said, by their ids; names of which one was said
// have none.
func (y *shellClient) find(ctx context.Context, before map[string]string) (map[string]string, error) {
	now, err := y.named(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, id := range y.ids {
		known[now[id]] = true
	}
	maps.DeleteFunc(now, func(id, name string) bool {
		_, old := before[id]
		return old || known[name] || slices.Contains(y.ids, id)
	})
	return now, nil
}

// claim takes what was found for ours where that makes us whole, with one application of each name.
func (y *shellClient) claim(found map[string]string) bool {
	names := slices.Sorted(maps.Values(found))
	if len(y.ids)+len(found) != len(y.Applications) || len(slices.Compact(names)) != len(found) {
		return false
	}
	y.ids = append(y.ids, slices.Sorted(maps.Keys(found))...)
	return true
}

// mostLines of what the client said are told when it did not submit.
const mostLines = 8

// State puts those of all applications together.
func (y *shellClient) State(ctx context.Context) (job.State, error) {
	states := make([]job.State, len(y.ids))
	errs := make([]error, len(y.ids))
	if err := y.open(ctx); err != nil {
		return job.State{}, err
	}
	var wg sync.WaitGroup
	for i, id := range y.ids {
		wg.Go(func() { states[i], errs[i] = y.application(ctx, id) })
	}
	wg.Wait()
	return job.Together(states), errors.Join(errs...)
}

// Stop has YARN kill the applications.
func (y *shellClient) Stop(ctx context.Context) error {
	var errs []error
	for _, id := range y.ids {
		errs = append(errs, y.kill(ctx, id))
	}
	return errors.Join(errs...)
}

// Hints are the launcher's own commands that follow the job and end it.
func (y *shellClient) Hints() (follow, end string) {
	if len(y.ids) == 0 {
		return "yarn application -list -appTypes YARN", "yarn application -kill ID"
	}
	var status, logs, kill []string
	for _, id := range y.ids {
		status, logs = append(status, "yarn application -status "+id), append(logs, "yarn logs -applicationId "+id)
		kill = append(kill, "yarn application -kill "+id)
	}
	return strings.Join(status, "; ") + " (logs: " + strings.Join(logs, "; ") + ")", strings.Join(kill, "; ")
}
