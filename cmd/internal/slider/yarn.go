package slider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/submit"
	"github.com/muster-agent/muster/shim/wait"
)

// withoutEffect are the options that have none on YARN, and why.
func (c *call) withoutEffect() []Option {
	rest := slices.DeleteFunc(c.ignored, func(o Option) bool { return slices.Contains(ofYarn, o.Name()) })
	for i, o := range rest {
		if reason, ok := yarnReasons[o.Name()]; ok {
			rest[i].ignored = reason
		}
	}
	for _, o := range runOptions() {
		if c.has(o.Name()) && slices.Contains([]string{"--userns", "--host"}, o.Name()) {
			o.ignored = "it is of a run on this host"
			rest = append(rest, o)
		}
	}
	return rest
}

// yarnReasons are why options have no effect on YARN, where it is for another reason than on this host.
var yarnReasons = map[string]string{
	"-D":        "the files in HADOOP_CONF_DIR say it",
	"--appconf": "the definition is kept on this host",
}

// onYarn finds out whether this command line is about an app on YARN.
func (c *call) onYarn() bool {
	if c.verb == "create" || c.verb == "build" {
		y, err := c.cluster()
		return y != nil || err != nil // it is told then
	}
	h, name, err := c.named()
	if err != nil {
		return c.has("--manager")
	}
	a, err := h.opened(c, name)
	return err == nil && a.record.Yarn != nil
}

// submit has YARN run the app, by `muster submit yarn`, and returns when YARN has accepted it; with --wait when its
// instances run, or it is over.
func (a *app) submit(ctx context.Context, lock *hostlock.Lock) error {
	limit, err := a.wait()
	if err != nil {
		return err
	}
	if err := a.hasManager(); err != nil {
		return err
	}
	y := a.record.Yarn
	if y.Runs == 0 { // the registry may know runs of an app of that name
		if y.Runs, err = a.runBefore(ctx); err != nil {
			return err
		}
	}
	goesOn, err := a.interrupted(ctx)
	if err != nil {
		return err
	}
	if !goesOn {
		y.Runs++
	}
	y.begin() // what a submit that fails has begun is found by its name
	if err := a.record.write(a.kept()); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	answer, err := a.runSubmit()
	if err != nil {
		a.keepBegun(ctx)
		fmt.Fprintf(a.Err, "%s is kept: muster slider start %s submits it again, update changes it, destroy --force "+
			"removes it\n", a.name, a.name)
		return err
	}
	y.is(answer.ID)
	if err := a.record.write(a.kept()); err != nil {
		return exit.With(exit.Forbidden, fmt.Errorf("%s is there as %s: %w", a.name, y.ID, err))
	}
	_ = lock.Release() // the wait may be long, and the record is written
	fmt.Fprintf(a.Out, "%s: accepted by YARN as %s\n", a.name, y.ID)
	if limit != nil && *limit > 0 {
		if err := a.awaitRunning(ctx, *limit); err != nil {
			return err
		}
	}
	return a.writeReport(ctx)
}

// keepBegun keeps which application a submit that failed has begun, or the one before. A ResourceManager that does not
// answer now is asked again by the next command about the app.
func (a *app) keepBegun(ctx context.Context) {
	if _, err := a.found(context.WithoutCancel(ctx)); err != nil {
		return
	}
	if err := a.record.write(a.kept()); err != nil {
		fmt.Fprintf(a.Err, "%s: %v\n", a.name, err)
	}
}

// runBefore is the number of the run that the registry has under the app's name; 0: none.
func (a *app) runBefore(ctx context.Context) (int, error) {
	st, err := a.lookup().Status(ctx, a.lookup().Address, a.name)
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return 0, nil
	case err != nil:
		return 0, exit.OfRegistry(fmt.Errorf("%s: which runs of that name there were is not known: %w", a.name, err))
	case st.Verdict == nil:
		return 0, nil
	}
	n, err := strconv.Atoi(st.App.Run)
	if err != nil {
		return 0, nil //nolint:nilerr // of a run that was not started by slider
	}
	return n, nil
}

// submitArgs are the arguments of the app's `muster submit`.
func (a *app) submitArgs() ([]string, error) {
	y := a.record.Yarn
	return a.args([]string{"submit", "yarn", "--json"}, [][2]string{
		{"--run", y.run()},
		{"--address", a.address()},
		{"--queue", y.Queue},
		{"--store", y.Store},
		{"--token-file", y.TokenFile},
	})
}

// runSubmit runs `muster submit`. Ctrl-C is for it: it takes back what it has begun.
func (a *app) runSubmit() (answer submit.Answer, err error) {
	args, err := a.submitArgs()
	if err != nil {
		return answer, err
	}
	self, err := os.Executable()
	if err != nil {
		return answer, err
	}
	args, given := mask.Hand(args)
	var out bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = &out, a.Err
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isFlag), given...)
	if conf := a.record.Yarn.Conf; conf != "" {
		cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+conf)
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	defer func() {
		signal.Stop(caught)
		close(caught)
	}()
	if err = cmd.Start(); err == nil {
		go func() {
			for s := range caught {
				if s == syscall.SIGTERM { // a terminal's Ctrl-C reaches it as well
					_ = cmd.Process.Signal(s)
				}
			}
		}()
		err = cmd.Wait()
	}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return answer, exit.Silent{Code: max(ended.ExitCode(), 1)} // it has said why
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &answer)
	}
	return answer, exit.With(exit.Internal, err)
}

// awaitRunning waits until the app runs, or is over.
func (a *app) awaitRunning(ctx context.Context, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var f apps.Facts
	var err error
	if !wait.Until(waiting, func() bool {
		f, err = a.standing(waiting) // a manager that does not answer is asked again
		return err == nil && (!isLive(a.word) || allRun(&f) || f.Verdict() != nil)
	}) || waiting.Err() != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && waiting.Err() == nil {
			fmt.Fprintf(a.Err, "%s: %v\n", a.name, err)
		}
		fmt.Fprintf(a.Err, "%s: not running within %s; it goes on: muster slider status %s\n", a.name, limit, a.name)
		return exit.Silent{Code: exit.Timeout}
	}
	v := f.Verdict()
	switch {
	case v != nil:
		fmt.Fprintf(a.Out, "%s: %s\n", a.name, exit.VerdictText(*v))
		if code := exit.Of(*v, ""); code != 0 {
			return exit.Silent{Code: code}
		}
	case !isLive(a.word):
		return exit.With(1, fmt.Errorf("%s: YARN says %s of %s before an agent has joined: yarn logs -applicationId %s",
			a.name, a.word, a.record.Yarn.ID, a.record.Yarn.ID))
	default:
		fmt.Fprintf(a.Out, "%s: runs\n", a.name)
	}
	return nil
}

// allRun tells that the run's instances have started and none is missing, as after a run that was interrupted.
func allRun(f *apps.Facts) bool {
	if f.Phase() != "running" || f.Registry == nil {
		return false
	}
	d, there := f.Registry.Directive, map[string]int{}
	for _, m := range f.Registry.Members {
		if m.Live || m.Member.Phase == registry.PhaseEnded && m.Member.Gen == d.Gen {
			there[m.Instance.Component]++
		}
	}
	for name, wanted := range d.Counts {
		if there[name] < wanted {
			return false
		}
	}
	return true
}

// endOnYarn stops the run in grace, and the service when its agents have ended. One that nobody has joined is ended by
// YARN at once.
func (a *app) endOnYarn(ctx context.Context, waits bool, options ask.StopOptions) error {
	f, err := a.standing(ctx)
	if err != nil {
		return err
	}
	if !a.runs(&f) {
		fmt.Fprintf(a.Out, "%s does not run\n", a.name)
		return nil
	}
	if a.unheard != nil && options.Grace == nil {
		return exit.With(exit.Registry, fmt.Errorf("%s: its agents cannot be told to end in grace, as the registry "+
			"does not answer: stop it when it does, or with --force, and YARN kills them", a.name))
	}
	s, err := a.service()
	if err != nil {
		return err
	}
	var stopped error
	if f.Registry != nil && f.Verdict() == nil && f.Registry.Live > 0 {
		stopped = ask.Stop(ctx, a.Streams, a.lookup(), a.name, options)
		if !waits || ctx.Err() != nil { // its agents end by themselves, and YARN's service after them
			return stopped
		}
		// Nobody has told them to end: YARN would kill them.
		if now, err := a.standing(ctx); stopped != nil && options.Grace == nil && (err != nil || now.Verdict() == nil) {
			return stopped
		}
	}
	if err := s.Stop(ctx); err != nil {
		return errors.Join(stopped, err)
	}
	if !waits {
		return stopped
	}
	waiting, cancel := context.WithTimeout(ctx, yarnPatience)
	defer cancel()
	over := wait.Until(waiting, func() bool {
		at, err := s.State(waiting)
		return err == nil && at.Over
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !over:
		stopped = errors.Join(stopped, exit.With(exit.Timeout, fmt.Errorf("%s: YARN has not ended %s after %s",
			a.name, a.record.Yarn.ID, yarnPatience)))
	case stopped == nil:
		fmt.Fprintf(a.Out, "%s: YARN has ended %s\n", a.name, a.record.Yarn.ID)
	}
	return stopped
}

// yarnPatience is how long YARN may take to end a service whose agents have ended.
const yarnPatience = 2 * time.Minute

// keepGrowing does so again and again until the function that it returns is called: agents of a flex before may
// still be on their way out, and count until YARN has seen their end.
func (a *app) keepGrowing(ctx context.Context, want map[string]int) (end func()) {
	if a.record.Yarn == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for wait.For(ctx, growAgain) == nil {
			_ = a.grow(ctx, want) // the flex says what lacks at its end
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// growAgain is the time between two questions whether YARN has all that a flex needs.
const growAgain = 3 * time.Second

// grow has YARN start the agents that a flex needs.
func (a *app) grow(ctx context.Context, want map[string]int) error {
	if a.record.Yarn == nil {
		return nil
	}
	s, err := a.service()
	if err != nil {
		return err
	}
	return exit.Default(exit.Registry, s.Grow(ctx, want))
}

// forgetOnYarn has YARN and the registry forget the app.
func (a *app) forgetOnYarn(ctx context.Context) error {
	if a.record.Yarn.Runs == 0 { // none was submitted
		return nil
	}
	s, err := a.found(ctx)
	if err != nil {
		return err
	}
	if a.record.Yarn.ID != "" { // else YARN has taken none
		if err := s.Destroy(ctx, a.name); err != nil {
			return exit.Default(exit.Registry, err)
		}
	}
	stores, brought := hadoop.Login{Conf: a.record.Yarn.Conf}.Stores(a.Err), a.record.Yarn.Store
	if err := submit.RemoveRuns(ctx, brought, stores, a.name, a.lookup().Address); err != nil {
		fmt.Fprintf(a.Err, "%s: what its runs were brought stays in %s: %v\n", a.name, brought, err)
	}
	err = a.lookup().Forget(ctx, a.name)
	if errors.Is(err, registry.ErrNoApp) { // nobody ever joined
		return nil
	}
	return err
}
