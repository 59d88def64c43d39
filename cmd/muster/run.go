package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/workdir"
)

// runFlags are the settings of `muster run`.
type runFlags struct {
	app        flags.App
	appID      string
	workDir    string
	logDir     string
	host       string
	ports      string
	env        []string
	json       bool
	output     string
	engine     string
	strict     bool
	policy     string
	registry   flags.Registry
	filesystem flags.Filesystem
	state      flags.State
	paiReport  bool
}

func newRun(s console.Streams) *cobra.Command {
	f := runFlags{}
	cmd := &cobra.Command{
		Use: "run APP", Short: "Run a whole app on this machine, one agent per instance", Args: exactly("APP"),
		Example: `  muster run catalog:handwriting
  muster run catalog:handwriting --instances ps=1,worker=3 --app-id d1 --work-dir w --json
  muster run DIR --registry consul://127.0.0.1:8500`,
		ValidArgsFunction: completeApp,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	flags := cmd.Flags()
	f.app.Register(flags)
	f.registry.Register(flags)
	flags.Lookup("registry").Usage = registry.AddressForms + " (default: one of its own, embedded in this command, whatever CONSUL_HTTP_ADDR says)"
	f.state.Register(flags)
	f.filesystem.Register(flags)
	flags.StringVar(&f.appID, "app-id", "", "name of the gang (default: the app's name and six letters)")
	flags.StringVar(&f.workDir, "work-dir", "", "folder for package, checkpoints and instances")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for logs (default: log in the work folder)")
	flags.StringVar(&f.host, "host", "", "address of this machine (default with the embedded registry: 127.0.0.1)")
	flags.StringVar(&f.ports, "ports", ports.Default.String(), "range to take ports from")
	flags.StringVar(&f.engine, "engine", "auto", "how the processes are confined: auto, container, cgroup or process")
	flags.BoolVar(&f.strict, "require-limits", false, "end with 77 rather than run where a limit that was asked for is not enforced")
	flags.StringVar(&f.policy, "policy", "", "what this host's operator permits and forbids (default: "+policy.DefaultFile+")")
	flags.StringArrayVar(&f.env, "env", nil, "NAME[=VALUE] for the processes; repeatable")
	flags.BoolVar(&f.paiReport, paiReportFlag, false, paiReportUsage)
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.StringVar(&f.output, "output", outputAuto, "`HOW` stderr shows the run: table (a row per instance), lines (what the processes write), or auto: table on a terminal, lines otherwise")
	completeFlag(cmd, "output", cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// runner is one `muster run`.
type runner struct {
	flags   *runFlags
	streams console.Streams
	app     *openapp.App
	appID   string
	runID   string
	workDir string
	logDir  string
	state   status.Dir
	address registry.Address
	client  *consul.Client
	log     *slog.Logger
	started time.Time
	agents  []*child
	closers []func()

	screen sync.Mutex // of stderr
	drawn  int        // lines of the table that stand above the cursor
}

func (f *runFlags) run(ctx context.Context, s console.Streams, ref string) error {
	rules, err := policy.Read(cmp.Or(f.policy, policy.DefaultFile), f.policy != "")
	if err != nil {
		return err
	}
	f.app.Policy = &rules
	f.app.Hadoop = f.filesystem.Hadoop.Login
	app, err := f.app.Load(ctx, ref, s.Err)
	if err != nil {
		return errors.Join(err, f.refuse(s, ref, err))
	}
	defer app.Close()
	r := &runner{flags: f, streams: s, app: app, state: f.state.Resolve(), started: time.Now(), log: slog.New(slog.DiscardHandler)}
	defer func() {
		for _, undo := range slices.Backward(r.closers) {
			undo()
		}
	}()
	if err := r.check(); err != nil {
		return err
	}
	// Each agent would say the same.
	if _, err := prepare.ChooseEngine(ctx, f.engine, &app.App); err != nil {
		return err
	}
	r.closers = append(r.closers, func() { _ = os.Remove(r.state.App(r.appID)) }) // of a run that was refused it is empty
	if err := r.settle(); err != nil {
		return err
	}
	if err := r.openRegistry(ctx); err != nil {
		return err
	}
	if err := r.ownWork(); err != nil {
		return err
	}
	if err := r.keepJob(); err != nil {
		return err
	}
	return r.supervise(ctx)
}

// check names the run, and what is wrong with the flags, before anything is made.
func (r *runner) check() error {
	r.appID = r.flags.appID
	if r.appID == "" {
		r.appID = appdef.NameOf(r.app.Name, "-"+letters(6))
	}
	if err := appdef.CheckName("run: --app-id", r.appID); err != nil {
		return exit.With(exit.Usage, err)
	}
	r.runID = strconv.FormatInt(r.started.Unix(), 10) + "-" + letters(4)
	if how := r.flags.output; !slices.Contains(outputs(), how) {
		return exit.Usagef("run: --output %q: want one of %s", how, strings.Join(outputs(), ", "))
	}
	if _, err := flags.Ports(r.flags.ports); err != nil {
		return err
	}
	filesystem, _, err := r.flags.filesystem.Resolve() // the agents tell of a warning
	if err != nil {
		return err
	}
	if err := refuseData(r.app.App, r.app.ClientVars(), filesystem); err != nil {
		return err
	}
	if err := refusePorts(r.app.App); err != nil {
		return err
	}
	client, _, err := r.flags.registry.Open(r.log)
	if err == nil {
		client.Close()
	}
	return err
}

// settle makes the run's folders.
func (r *runner) settle() error {
	work := r.flags.workDir
	if work == "" {
		var err error
		if work, err = status.DefaultWorkDir(r.appID); err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	r.workDir = flags.Absolute(work)
	r.logDir = filepath.Join(r.workDir, "log")
	if r.flags.logDir != "" {
		r.logDir = flags.Absolute(r.flags.logDir)
	}
	if err := workdir.Refuse(r.workDir, r.app, plan.Instances(&r.app.App)); err != nil {
		return err
	}
	for _, dir := range []string{r.workDir, r.logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return exit.With(exit.Forbidden, fmt.Errorf("make folder: %w", err))
		}
	}
	return exit.With(exit.Forbidden, r.state.Open())
}

// ownWork takes the work folder, or says who has it.
func (r *runner) ownWork() error {
	lock, err := workdir.LockRun(r.workDir)
	if fault.Is(err, registry.ClassHost) {
		return exit.With(exit.Held, err)
	}
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	r.closers = append(r.closers, func() { _ = lock.Release() }) // this process ends
	return nil
}

// openRegistry starts the embedded one, unless --registry or its variable names another.
func (r *runner) openRegistry(ctx context.Context) error {
	if r.flags.registry.Address == "" {
		if err := r.embed(ctx); err != nil {
			return err
		}
	}
	var err error
	if r.address, err = r.flags.registry.Resolve(); err != nil {
		return err
	}
	client, _, err := r.flags.registry.Open(r.log)
	if err != nil {
		return err
	}
	r.client = client
	r.closers = append(r.closers, client.Close)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return exit.With(exit.Registry, fmt.Errorf("registry %s: %w", r.address, err))
	}
	return r.chooseRun(ctx)
}

// chooseRun goes on with an unfinished run of this name; a finished one is followed by a new one.
func (r *runner) chooseRun(ctx context.Context) error {
	st, err := r.client.Status(ctx, r.appID)
	switch {
	case errors.Is(err, registry.ErrNoApp):
	case err != nil:
		return exit.With(exit.Registry, err)
	case st.Verdict == nil && st.Live > 0:
		return exit.With(exit.Held, fmt.Errorf("%s is running already: run %s with %d live agents; muster status %s says more", r.appID, st.App.Run, st.Live, r.appID))
	case st.Verdict == nil:
		r.runID = st.App.Run
		fmt.Fprintf(r.streams.Err, "%s: run %s was interrupted and goes on\n", r.appID, r.runID)
	}
	return nil
}

// refuseSurvivors: an embedded registry knows nothing of the agents that a killed `muster run` has left and
// that still stop in grace. A new one at the same place would have their processes run beside ours.
func (r *runner) refuseSurvivors(ctx context.Context) error {
	left := apps.AskSockets(ctx, r.state.Sockets(r.appID))
	if len(left) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(left)), ", ")
	return exit.With(exit.Held, fmt.Errorf("%s is running already: its agents of %s still live; muster stop %s ends them", r.appID, names, r.appID))
}

func (r *runner) embed(ctx context.Context) error {
	path := r.state.Socket(r.appID, "registry")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if len(path) > status.MaxSocket {
		return exit.Usagef("run: state folder %s: a socket in it would have a path of %d bytes, want at most %d; give --state-dir a shorter one", r.state, len(path), status.MaxSocket)
	}
	if err := r.refuseSurvivors(ctx); err != nil {
		return err
	}
	l, err := embedded.ListenUnix(ctx, path)
	if err != nil {
		return exit.With(exit.Held, fmt.Errorf("%s: %w; is it running already?", r.appID, err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- embedded.Serve(ctx, embedded.Options{Listener: l, Logger: r.log}) }()
	r.closers = append(r.closers, func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(r.streams.Err, "muster: embedded registry:", err)
		}
	})
	r.flags.registry.Address = registry.SocketAddress(path).String()
	return nil
}

// letters are n random letters and digits.
func letters(n int) string {
	const set = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	for i := range b {
		b[i] = set[int(b[i])%len(set)]
	}
	return string(b)
}

// keepJob writes a job file that came on stdin where the agents find it.
func (r *runner) keepJob() error {
	if r.app.Ref != openapp.Stdin {
		return nil
	}
	path := filepath.Join(r.workDir, "."+pai.JobFile) // a person's own job file may lie there
	if err := os.WriteFile(path, r.app.Source.Job, 0o644); err != nil {
		return exit.With(exit.Forbidden, fmt.Errorf("keep the job file: %w", err))
	}
	r.app.Ref = path
	return nil
}
