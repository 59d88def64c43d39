package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
)

// Options are what a submission is told beside its job.
type Options struct {
	Job
	Store   string // URL of the folder for what the hosts need; empty: the definition's
	StoreAs string // the store as the hosts see it; empty: as we do
	Address string // of the launcher's API
	UnitDir string // for units of systemd

	Wait     bool // follow the run, and end with its verdict
	Kill     bool // on Ctrl-C while waiting: stop the run
	HBox     bool // report progress as HBox does
	Registry Registry
	User     string // who stops the run by Ctrl-C
	// Submission of HBox's is run in place of args; nil: none was read yet.
	Submission *hbox.Submission
	// Pack makes a package of a submission of HBox's in a folder of its own below dir.
	Pack func(dir string, job hbox.Submission) (string, error)

	Out io.Writer // takes the launcher's id of the job, and the verdict
	Err io.Writer // takes what happens meanwhile
	// Page is where people see an app in a browser; nil or "": nowhere.
	Page func(app string) string
	// Answer takes the answer in place of Out; nil: Out has it as text.
	Answer func(Answer) error
}

// Answer is the answer of muster submit --json.
type Answer struct {
	Version     int      `json:"version"`
	Launcher    string   `json:"launcher"`
	ID          string   `json:"id"`
	App         string   `json:"app"`
	Run         string   `json:"run"`
	Registry    string   `json:"registry"`
	Store       string   `json:"store"` // empty: nothing was brought
	Objects     []string `json:"objects"`
	Unsupported []string `json:"unsupported"`
	Outcome     *string  `json:"outcome"` // null: it was not waited for, or has none
	Code        *int     `json:"code"`    // that this ends with
}

// submission is a job at its launcher, and its run in the registry.
type submission struct {
	*Options
	client      job.Client
	artifacts   *artifacts
	id          string // the launcher's
	def         appdef.App
	unsupported []string
	before      standing // of our app, before the job was started
}

// standing is what the registry says of an app.
type standing struct {
	st  consul.Status
	err error
}

// Run submits args, APP or the words of a submission of HBox's. Until the job is started, Ctrl-C leaves nothing
// behind; a second one ends this process at once.
func (o *Options) Run(ctx context.Context, args []string) error {
	if want := o.Launcher.Client.Format; want != "" {
		if got := o.File.Format; got != "" && got != want {
			return exit.Usagef("submit %s: --format %s: its API takes %s", o.Launcher.Jobs.Name, got, want)
		}
		o.File.Format = want
	}
	o.Err = &lines{w: o.Err}
	o.Warn = o.Err
	starting, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	quiet := context.AfterFunc(starting, func() {
		stop()
		fmt.Fprintln(o.Err, "interrupted: what was begun is taken back; once more ends this command at once")
	})
	defer quiet()
	a, err := newArtifacts()
	if err != nil {
		return err
	}
	defer a.close()
	s, err := o.launch(starting, a, args)
	switch {
	case starting.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(starting))):
		return exit.With(exit.CtrlC, errors.Join(errors.New("submit: interrupted before it was started"), a.stays))
	case err != nil:
		return err
	}
	begun := func() bool {
		uninterrupted := quiet()
		stop()
		return uninterrupted
	}
	if o.Wait {
		return s.wait(ctx, begun)
	}
	if !begun() {
		return s.undo(ctx)
	}
	err = s.answer(nil, nil)
	s.tidy(ctx, func(line string) { fmt.Fprintln(o.Err, line) })
	return err
}

// lines has those who write at once write one after the other.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// launch brings the artifacts and starts the job.
func (o *Options) launch(ctx context.Context, a *artifacts, args []string) (*submission, error) {
	app, err := o.load(ctx, a, args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // nothing that loads an app hears of it
		return nil, err
	}
	if err := o.complete(&app); err != nil {
		return nil, err
	}
	if err := o.place(ctx, a, &app); err != nil {
		return nil, err
	}
	o.File.Starts = true
	rendered, err := o.render(app, a.unsupported)
	if err != nil {
		return nil, err
	}
	client, err := o.Launcher.Client.New(job.Request{
		Job: rendered, Options: o.File, Address: o.Address, UnitDir: o.UnitDir,
		Hadoop: o.Choices.Hadoop.Conf, Warn: o.Err, Stores: o.Choices.Hadoop.Stores(o.Err),
		Negotiate: o.Choices.Hadoop.Config("").Negotiator(),
	})
	if err != nil {
		return nil, err
	}
	s := &submission{Options: o, client: client, artifacts: a, def: app, unsupported: rendered.Unsupported}
	return s, s.start(ctx)
}

// start brings what the hosts need and starts the job. What was brought for one that could not be started goes.
func (s *submission) start(ctx context.Context) (err error) {
	if err := s.checkFree(ctx); err != nil {
		return err
	}
	record := record{App: s.app(), Run: s.run(), Registry: s.registry(), Launcher: s.launcher(), At: time.Now().UTC()}
	if err := s.artifacts.bring(ctx, record); err != nil {
		return err
	}
	if s.id, err = s.client.Start(ctx); err != nil {
		return s.notStarted(ctx, err)
	}
	if ctx.Err() != nil {
		return s.undo(ctx)
	}
	if err := s.artifacts.replace(ctx); err != nil {
		fmt.Fprintf(s.Err, "store: what the run brought earlier stays: %v\n", err)
	}
	return s.announce()
}

// notStarted says why, and takes back what was brought, unless the job may be there.
func (s *submission) notStarted(ctx context.Context, err error) error {
	if !errors.Is(err, job.ErrUnknown) {
		return errors.Join(startError(fmt.Errorf("submit: %w", err)), s.artifacts.takeBack(ctx))
	}
	look, end := s.client.Hints()
	err = fmt.Errorf("submit: %w; look: %s; end it: %s; what it was brought stays", err, look, end)
	if ctx.Err() != nil {
		return exit.With(exit.CtrlC, err)
	}
	return startError(err)
}

// startError gives what kept a job from being started its exit code.
func startError(err error) error {
	code := 1
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, job.ErrRuns), errors.Is(err, job.ErrForeign):
		code = exit.Held
	case errors.Is(err, job.ErrUnreachable):
		code = exit.Registry
	}
	return exit.Default(code, err)
}

// announce tells the launcher's id, and how the job is followed by who does not wait here.
func (s *submission) announce() error {
	if !s.Wait {
		defer func() { fmt.Fprintln(s.Err, s.handles()) }()
	}
	switch {
	case s.Answer != nil && s.Wait: // the answer comes at the end
		fmt.Fprintf(s.Err, "%s: %s\n", s.launcher(), s.id)
	case s.Answer != nil:
	default:
		if _, err := fmt.Fprintln(s.Out, s.id); err != nil {
			if err = s.unsaid(err); !s.Wait {
				return err
			}
			fmt.Fprintf(s.Err, "muster: %v\n", err)
		}
	}
	if s.Page != nil && s.Page(s.app()) != "" {
		fmt.Fprintln(s.Err, "page:", s.Page(s.app()))
	}
	return nil
}

// undo ends a job that was started when Ctrl-C came, and takes back what it was brought.
func (s *submission) undo(ctx context.Context) error {
	// It was cancelled by the Ctrl-C that this answers; the client's patience bounds it.
	after := context.WithoutCancel(ctx)
	if err := s.client.Stop(after); err != nil {
		look, end := s.client.Hints()
		return exit.With(exit.CtrlC, fmt.Errorf("submit: interrupted, and %s %s was started: %w; look: %s; end it: "+
			"%s; what it was brought stays",
			s.launcher(), s.id, err, look, end))
	}
	return exit.With(exit.CtrlC, errors.Join(
		fmt.Errorf("submit: interrupted: %s ends %s, which had been started",
			s.launcher(), s.id), s.artifacts.takeBack(after)))
}

// checkFree refuses an app that another run holds: its agents would be turned away one by one. A registry that does
// not answer from here may answer there.
func (s *submission) checkFree(ctx context.Context) error {
	st, err := s.Registry.Status(ctx, s.app())
	s.before = standing{st, err}
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return nil
	case err != nil:
		if s.Wait {
			return s.Registry.Error(err)
		}
		fmt.Fprintf(s.Err, "registry %s does not answer from here: %v\n", s.registry(), err)
		return nil
	case st.Verdict == nil && st.Live > 0 && !s.ours(st.App.Run):
		return startError(fmt.Errorf("submit: app %s %w, as run %s: muster stop %s, or another --app-id",
			s.app(), job.ErrRuns, st.App.Run, s.app()))
	case st.Verdict != nil && st.App.Run == s.first() && !startsAgain(s.Launcher.Client, *st.Verdict):
		fmt.Fprintf(s.Err, "run %s of %s is over: %s; nothing of it runs again, and --run NAME begins a new one\n",
			st.App.Run, s.app(), exit.VerdictText(*st.Verdict))
	}
	return nil
}

func (s *submission) app() string                { return s.File.AppID }
func (s *submission) run() string                { return s.File.Run }
func (s *submission) registry() registry.Address { return s.File.Registry }
func (s *submission) launcher() string           { return s.Launcher.Jobs.Name }

// numbered tells that the launcher numbers the job's runs, from 0 with each submission, as a JobSet does.
func (s *submission) numbered() bool { return s.first() != s.run() }

// first is the run that the job's first agents have.
func (s *submission) first() string {
	if first := s.Launcher.Client.FirstRun; first != nil {
		return first(s.run(), s.File.Format)
	}
	return s.run()
}

// ours tells a run of this job.
func (s *submission) ours(run string) bool { return IsRunOf(run, s.run()) }

// IsRunOf tells a run that was submitted under a name: a launcher that starts a whole job again numbers its runs.
func IsRunOf(run, name string) bool {
	number, numbered := strings.CutPrefix(run, name+"-")
	return run == name || numbered && number != "" && strings.Trim(number, "0123456789") == ""
}

// startsAgain tells of a verdict that the launcher answers with a new run.
func startsAgain(to job.Launcher, v registry.Verdict) bool {
	return to.NewRuns && exit.Of(v, "") == exit.Held
}

// handles are the commands by which the job is followed and ended without this one.
func (s *submission) handles() string {
	where := s.app() + " --registry " + s.registry().String()
	follow, end := s.client.Hints()
	return "  follow it: muster status " + where + " --run " + s.run() + " --wait, or " + follow + "\n" +
		"  stop it:   muster stop " + where + "; while no agent is there yet, or without a verdict, " + end
}

// unsaid is an answer that cannot be written: the launcher has the job, and its id is told where it still can be.
func (s *submission) unsaid(err error) error {
	return exit.With(exit.Internal, fmt.Errorf("submit: print: %w; the job is there: %s %s", err, s.launcher(), s.id))
}

// answer gives the answer of --json; code is what this ends with, nil where nobody waited.
func (s *submission) answer(v *registry.Verdict, code *int) error {
	if s.Answer == nil {
		return nil
	}
	out := Answer{
		Version: 1, Launcher: s.launcher(), ID: s.id, App: s.app(), Run: s.run(), Registry: s.registry().String(),
		Objects: append([]string{}, s.artifacts.names...), Unsupported: append([]string{}, s.unsupported...),
		Code: code,
	}
	if s.artifacts.store != nil {
		out.Store = s.artifacts.store.String()
	}
	if v != nil {
		out.Outcome = new(string(v.Outcome))
	}
	if err := s.Options.Answer(out); err != nil {
		return s.unsaid(err)
	}
	return nil
}
