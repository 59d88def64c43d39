package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/side"
	"github.com/muster-agent/muster/shim/status"
)

// Side processes run beside the instance's own, in its container, from its start to its end. Their ends are no events
// of the machine.

const (
	// sideGrace is the time between a side process's TERM and its KILL. The end of the attempt waits for it.
	sideGrace = 3 * time.Second
	// farewell is how long a side process that ends by itself may run after the process has ended with 0: other
	// instances may still need it.
	farewell = time.Minute
)

// sideGroup are the side processes of one attempt.
type sideGroup struct {
	life  context.Context //nolint:containedctx // of its sessions, which end with the guard
	log   *slog.Logger
	ports *ports.Instance
	guard *sandbox.Guard
	host  string // the instance's address
	key   func(side string) (string, error)
	// warn and mended have status tell of a side process that serves HTTP and does not answer, or that ends again and
	// again.
	warn, mended func(kind, text string)
	at           string // APP/INSTANCE, as the command line takes it
	all          []*sideProcess
	lives        sync.WaitGroup

	over    chan struct{} // closed when the instance's process has ended: no side starts any more
	leave   chan struct{} // closed when the sides are to end
	mu      sync.Mutex
	isOver  bool
	well    bool // the process ended with 0
	stopped bool // the instance is to end
	left    bool
}

// sideProcess is one side process, through all of its starts.
type sideProcess struct {
	group *sideGroup
	plan  plan.Side
	spec  sandbox.ExecSpec
	out   *sideLog
	err   *sideLog

	mu       sync.Mutex
	pid      int // in its pid namespace; 0: it does not run
	restarts int
}

// beginSides starts the side processes after the instance's process.
func (p *Process) beginSides(
	guard *sandbox.Guard, r registry.Roster, facts plan.StartFacts, start plan.Start, limits map[string]sandbox.Rlimit,
) {
	if len(p.Plan.Sides) == 0 {
		return
	}
	p.endSides()
	g := &sideGroup{
		life: p.life, log: p.Log, ports: p.Ports, guard: guard, over: make(chan struct{}),
		leave: make(chan struct{}), host: p.Reach.Host, key: p.SideKey, warn: p.Warn, mended: p.Mended,
		at: p.Plan.App.ID + "/" + p.Instance.String(),
	}
	for _, s := range p.Plan.Sides {
		argv, env := plan.FinishSide(p.Plan, s, r, facts, start, frameworks.SideEnv)
		g.all = append(g.all, &sideProcess{
			group: g, plan: s, out: p.sideLog(s.Name, "stdout"), err: p.sideLog(s.Name, "stderr"),
			spec: sandbox.ExecSpec{
				Argv: argv, Env: environ(env), Dir: p.Plan.Process.Cwd, Rlimits: limits,
				Awaited: true, // it is asked to end, and not killed with the rest
			},
		})
	}
	p.mu.Lock()
	p.sides = g
	p.mu.Unlock()
	for _, s := range g.all {
		g.lives.Go(s.live)
	}
}

// currentSides are the sides of the current attempt, or of the last one.
func (p *Process) currentSides() *sideGroup {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sides
}

// endSides ends the sides of an attempt that is over, and returns when none of them uses ports or files.
func (p *Process) endSides() {
	g := p.currentSides()
	if g == nil {
		return
	}
	g.stop()
	g.processOver(false)
	g.lives.Wait()
}

// processOver is the end of the instance's process.
func (g *sideGroup) processOver(well bool) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOver {
		g.isOver, g.well = true, well
		close(g.over)
	}
	g.resolve()
}

// stop notes that the instance is to end: the sides end with its process.
func (g *sideGroup) stop() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.resolve()
}

// resolve tells the sides to end once the instance ends too. The caller holds the lock.
func (g *sideGroup) resolve() {
	if g.isOver && (g.stopped || !g.well) && !g.left {
		g.left = true
		close(g.leave)
	}
}

// live restarts the process until the instance's own has ended, or its rule ends it.
func (s *sideProcess) live() {
	defer s.out.close()
	defer s.err.close()
	defer s.tellMended(s.plan.Name + ": the instance's own process has ended")
	defer s.askForKey()()
	rule, past := side.Rule{Restart: s.plan.Restart, Finishes: s.plan.Finishes}, side.State{}
	for {
		if isClosed(s.group.over) {
			return
		}
		end, why := s.run()
		if isClosed(s.group.over) { // it ended with the process, or just before
			return
		}
		var pause time.Duration
		past, pause = side.Step(rule, past, end)
		log := s.group.log
		if past.Over() {
			log.Info("side process ended", "side", s.plan.Name, "how", why)
			return
		}
		if s.plan.HTTP || past.Unstable() {
			s.group.warn(s.warning(), s.text(why, past))
		}
		log.Warn("side process ended, and is started again", "side", s.plan.Name, "how", why, "pause", pause)
		s.hold()
		select {
		case <-s.group.over:
			return
		case <-time.After(pause):
		}
		s.mu.Lock()
		s.restarts = past.Restarts
		s.mu.Unlock()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run is one start, to the end of the process and of its children.
func (s *sideProcess) run() (end side.End, how string) {
	if err := s.group.ports.Release(s.owns); err != nil {
		return end, fmt.Sprintf("hand the port over: %v", err)
	}
	// The guard answers, or ends. A start that was cancelled might still happen.
	session, err := s.group.guard.Exec(s.group.life, s.spec)
	if err != nil {
		return end, err.Error()
	}
	begun := time.Now()
	_ = session.Stdin.Close() // it gets no input
	s.born(session.PID())
	defer s.born(0)
	s.group.log.Info("side process started", "side", s.plan.Name, "pid", session.PID())
	var said sync.WaitGroup
	said.Go(func() { _, _ = io.Copy(s.out, session.Stdout) }) // sideLog logs its own failures
	said.Go(func() { _, _ = io.Copy(s.err, session.Stderr) })
	unwatch, unwatchLife := s.watchHTTP(session), s.watchLife()
	select {
	case <-session.Done():
	case <-s.group.over:
		s.partWith(session)
	}
	unwatchLife()
	failed := unwatch()
	exit, err := session.Wait(s.group.life) // it ends with the guard at the latest
	said.Wait()
	s.clear(session)
	end = side.End{OK: err == nil && exit.Code != nil && *exit.Code == 0, Lived: max(time.Since(begun), 1)}
	switch {
	case failed != nil:
		end.OK, how = false, failed.Error()
	case err != nil:
		how = err.Error()
	case exit.Code != nil:
		how = fmt.Sprintf("ended with exit code %d", *exit.Code)
	default:
		how = fmt.Sprintf("ended by signal %d", exit.Signal)
	}
	return end, how
}

// watchHTTP ends a side process that serves HTTP when it answers no more. unwatch ends the watch, and says why it has
// ended it.
func (s *sideProcess) watchHTTP(session *sandbox.Session) (unwatch func() error) {
	if !s.plan.HTTP {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(s.group.life)
	failed := make(chan error, 1)
	go func() {
		host := s.group.host
		if s.plan.Inner != "" {
			host = "127.0.0.1"
		}
		err := probeOf(host, s.group.ports.Numbers()[s.binds()]).watch(ctx, func() {
			s.tellMended(s.plan.Name + " answers again")
		})
		if err != nil {
			s.kill(session)
		}
		failed <- err
	}()
	return func() error {
		cancel()
		return <-failed
	}
}

// warning is the kind of the warning about this one.
func (s *sideProcess) warning() string { return "side-" + s.plan.Name }

// text is what the warning says of its newest end.
func (s *sideProcess) text(why string, past side.State) string {
	again := ", and is started again"
	if past.Unstable() {
		again += fmt.Sprintf(" (%d times in a row)", past.InRow)
	}
	return s.plan.Name + " " + why + again + "; see muster logs " + s.group.at + " --side " + s.plan.Name
}

// tellMended takes the warning back, where there is one.
func (s *sideProcess) tellMended(text string) { s.group.mended(s.warning(), text) }

// watchLife takes the warning back once this start has lived for long, until the function that it returns is called.
// One that serves HTTP must answer instead.
func (s *sideProcess) watchLife() (end func()) {
	if s.plan.HTTP {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-time.After(side.StableAfter):
			s.tellMended(s.plan.Name + " runs again")
		case <-ended:
		}
	}()
	return func() { close(ended) }
}

func (s *sideProcess) born(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = pid
}

// partWith ends the side process after the instance's process. One that ends by itself may do so while others need it.
func (s *sideProcess) partWith(session *sandbox.Session) {
	if s.plan.Finishes {
		select {
		case <-session.Done():
			return
		case <-s.group.leave:
		case <-time.After(farewell):
			s.group.log.Warn("side process has not ended by itself", "side", s.plan.Name, "patience", farewell)
		}
	}
	err := session.Signal(syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, sandbox.ErrGone) {
		s.group.log.Warn("side process not signalled", "side", s.plan.Name, "err", err)
	}
	select {
	case <-session.Done():
		return
	case <-time.After(sideGrace):
	}
	s.kill(session)
}

// clear kills its children, which may hold its port.
func (s *sideProcess) clear(session *sandbox.Session) {
	if !isClosed(s.group.over) { // otherwise the guard does it
		s.kill(session)
	}
	if err := session.Close(); err != nil {
		s.group.log.Warn("session of a side process not closed", "side", s.plan.Name, "err", err)
	}
}

func (s *sideProcess) kill(session *sandbox.Session) {
	if err := session.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, sandbox.ErrGone) {
		s.group.log.Warn("side process not killed", "side", s.plan.Name, "err", err)
	}
}

// hold keeps strangers from the port until the next start.
func (s *sideProcess) hold() {
	if err := s.group.ports.Hold(s.owns); err != nil {
		s.group.log.Warn("port of a side process not held", "side", s.plan.Name, "err", err)
	}
}

// binds is the port that the program itself binds.
func (s *sideProcess) binds() string { return cmp.Or(s.plan.Inner, s.plan.Port) }

func (s *sideProcess) owns(port string) bool { return port == s.binds() }

// askForKey has the agent ask for the key at the side process's port, until the function that it returns is called.
func (s *sideProcess) askForKey() (end func()) {
	if s.plan.Inner == "" {
		return func() {}
	}
	key, err := s.group.key(s.plan.Name)
	var at net.Listener
	if err == nil {
		at, err = s.group.ports.Listen(s.plan.Port, s.group.host)
	}
	if err != nil {
		s.group.warn(s.warning()+"-key", s.plan.Name+" is shown to nobody: "+err.Error())
		return func() {}
	}
	s.group.mended(s.warning()+"-key", s.plan.Name+" asks for its key")
	ctx, cancel := context.WithCancel(s.group.life)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := gate.Serve(ctx, at, gate.Page{
			Name: s.plan.Name, Port: s.group.ports.Numbers()[s.plan.Inner], Key: key, Log: s.group.log,
		})
		if err != nil {
			s.group.log.Warn("page of a side process not served", "side", s.plan.Name, "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
		if err := s.group.ports.Hold(func(port string) bool { return port == s.plan.Port }); err != nil {
			s.group.log.Warn("port of a side process not held", "side", s.plan.Name, "err", err)
		}
	}
}

// ofProcess chooses the ports that the instance's own process binds.
func ofProcess(p plan.Plan) func(port string) bool {
	return func(port string) bool {
		return !slices.ContainsFunc(p.Sides, func(s plan.Side) bool { return s.Port == port || s.Inner == port }) &&
			(p.Login == nil || p.Login.Port != port)
	}
}

// seen is what the status shows of the sides.
func (g *sideGroup) seen() []status.Side {
	if g == nil {
		return nil
	}
	var all []status.Side
	for _, s := range g.all {
		s.mu.Lock()
		all = append(all, status.Side{Name: s.plan.Name, Pid: s.pid, Restarts: s.restarts})
		s.mu.Unlock()
	}
	return all
}

// mostSideLog is the size at which a side process's log is rotated, in bytes. One old log is kept.
const mostSideLog = 16 << 20

// sideLog is the output of a side process, through all of its starts. A write error ends nothing: the process must not
// wait for its reader.
type sideLog struct {
	log  *slog.Logger
	path string
	file *os.File
	size int64
	mute bool // the write error was logged
}

func (p *Process) sideLog(name, stream string) *sideLog {
	return &sideLog{log: p.Log, path: p.logs.path(SideLogName(name, stream))}
}

// SideLogName is the file of a side process's stream in an instance's log folder.
func SideLogName(name, stream string) string { return status.SidePrefix + name + "." + stream + ".log" }

// Write never fails.
func (l *sideLog) Write(b []byte) (int, error) {
	err := l.write(b)
	if err != nil && !l.mute {
		l.log.Warn("output of a side process lost", "file", filepath.Base(l.path), "err", err)
	}
	l.mute = err != nil
	return len(b), nil
}

func (l *sideLog) write(b []byte) error {
	if l.file != nil && l.size > 0 && l.size+int64(len(b)) > mostSideLog {
		l.close()
		folder, err := files.Below(filepath.Dir(l.path))
		if err != nil {
			return err
		}
		name := filepath.Base(l.path)
		if err := errors.Join(folder.Rename(name, name+".1"), folder.Close()); err != nil {
			return err
		}
	}
	if l.file == nil {
		f, err := files.AppendPlain(l.path)
		if err != nil {
			return err
		}
		l.file, l.size = f, files.PlainSize(l.path)
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	return err
}

func (l *sideLog) close() {
	if l.file == nil {
		return
	}
	if err := l.file.Close(); err != nil {
		l.log.Warn("output of a side process lost", "file", filepath.Base(l.path), "err", err)
	}
	l.file = nil
}
