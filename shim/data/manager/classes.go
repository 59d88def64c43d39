package manager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/formats"
	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/wait"
)

// Formats that users wrote in Java run as programs beside the process, in its confinement: what they read and write
// they read and write as it.

// layClasses adds what they need to the files of a start.
func (m *Manager) layClasses(start *plan.Start) {
	in, out := m.cfg.Process.Plan().Inputs, m.cfg.Process.Plan().Outputs
	if in != nil && plan.InputByClass(in.Format) || out != nil && plan.OutputByClass(out.Format) {
		formats.Lay(start)
	}
}

// java runs a format with these words. What it says on stderr goes to the agent's log when it fails. Its error is
// formats.Failure, or out's own.
func (m *Manager) java(ctx context.Context, words []string, in io.Reader, out io.Writer) error {
	session, err := m.cfg.Process.Beside(ctx, func(env map[string]string) []string {
		return formats.Command(env, m.cfg.Process.Plan().Limits.MemoryMB, words)
	})
	if err != nil {
		return fmt.Errorf("run %s by Java: %w", words[1], err)
	}
	defer func() { _ = session.Close() }() // it has ended
	var unread, unwritten error
	var streams sync.WaitGroup
	said := &tail.Buffer{}
	streams.Go(func() {
		_, unread = io.Copy(session.Stdin, in) // a program that has ended reads no more
		_ = session.Stdin.Close()
	})
	streams.Go(func() { _, _ = io.Copy(said, session.Stderr) }) // it ends with the program
	streams.Go(func() {
		if _, unwritten = io.Copy(out, session.Stdout); unwritten != nil {
			_ = session.Kill() // nobody wants the rest
		}
	})
	stop := context.AfterFunc(ctx, func() { _ = session.Kill() }) // it ends with its guard at the latest
	exit, err := session.Wait(context.WithoutCancel(ctx))
	stop()
	_ = session.Stdin.Close()
	streams.Wait()
	if exit.Code == nil && unwritten == nil { // the end of the process ends it, just before the agent is told
		_ = wait.For(ctx, endsWithin) // its error is that of ctx, which is looked at below
	}
	switch {
	case unwritten != nil:
		return unwritten
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("run %s by Java: %w", words[1], err)
	case exit.Code != nil && *exit.Code == 0:
		if errors.Is(unread, fs.ErrClosed) {
			return nil
		}
		return unread
	}
	stderr := strings.ToValidUTF8(said.String(), "?")
	m.cfg.Log.Warn("a format in Java has failed", "class", words[1], "stderr", stderr)
	if exit.Code == nil {
		return fmt.Errorf("the Java program was ended by signal %d while it ran %s", exit.Signal, words[1])
	}
	return formats.Failure(*exit.Code, stderr)
}

// endsWithin is how long after the programs beside it the end of a process is known.
const endsWithin = 5 * time.Second

// classes are the splits that a class of the user's has made, and this instance's share of them.
type classes struct {
	m    *Manager
	plan plan.Plan
	list *splitList // of all; nil: not known yet
	own  int        // how many are this instance's
}

// bringClass prepares an input that a class reads. It asks for nothing yet: the class comes with the process's files.
func (m *Manager) bringClass(p plan.Plan) error {
	for _, one := range p.Inputs.From {
		for _, url := range one.From {
			if local := files.LocalPath(url); local != "" {
				if err := m.cfg.Stores.Visible(p, local, false); err != nil {
					return fmt.Errorf("input %s: %w", one.Name, err)
				}
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeding = &feeding{source: &classes{m: m, plan: p}, inputs: p.Inputs}
	return nil
}

// Feed has the class read the instance's splits.
func (c *classes) Feed(ctx context.Context, to io.Writer, count *stream.Count) error {
	in := c.plan.Inputs
	if err := c.assign(ctx); err != nil {
		return &stream.ReadError{Path: "splits of " + in.Format, Err: err}
	}
	if c.own == 0 {
		return nil
	}
	out := &feedCount{to: to, count: count}
	splits, given := io.Pipe()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		given.CloseWithError(c.list.feedOwn(ctx, turnOf(in), given))
	}()
	words, properties := formats.Read(in)
	err := c.m.java(ctx, words, io.MultiReader(strings.NewReader(properties), splits), out)
	_ = splits.Close()
	<-fed
	switch {
	case out.err != nil:
		return out.err
	case err != nil:
		return &stream.ReadError{Path: "by " + in.Format, Err: err}
	}
	count.Splits += c.own
	return nil
}

// feedCount counts what a process is fed, and remembers that it reads no more.
type feedCount struct {
	to    io.Writer
	count *stream.Count
	err   error
}

func (f *feedCount) Write(b []byte) (int, error) {
	n, err := f.to.Write(b)
	f.count.Bytes += int64(n)
	f.count.Records += int64(bytes.Count(b[:n], []byte("\n")))
	f.err = err
	return n, err
}

// assign finds the instance's splits, once.
func (c *classes) assign(ctx context.Context) error {
	in := c.plan.Inputs
	if c.list != nil {
		return nil
	}
	list, err := c.bringList(ctx)
	if err != nil {
		return err
	}
	if list.all == 0 {
		_ = list.Close() // it has no name and leaves nothing
		return fmt.Errorf("the class has made none of %s", strings.Join(in.From[0].From, ", "))
	}
	c.list, c.own = list, turnOf(in).Count(list.all)
	c.m.cfg.Log.Info("inputs assigned", "splits", list.all, "own", c.own, "format", in.Format)
	if list.all < in.Workers && (in.Worker == 0 || c.own == 0) {
		c.m.warnFewSplits(list.all, in)
	}
	return nil
}

func turnOf(in *plan.Inputs) stream.Turn {
	return stream.Turn{Workers: in.Workers, Worker: in.Worker, Shuffle: in.Shuffle}
}

// bringList keeps the list of all splits: that of the reader who was first to have made it.
func (c *classes) bringList(ctx context.Context) (*splitList, error) {
	in := c.plan.Inputs
	words, properties := formats.Splits(in)
	makeList := func(to io.Writer) error { return c.m.java(ctx, words, strings.NewReader(properties), to) }
	if in.Shared == "" {
		return c.m.keepSplits(c.plan, makeList)
	}
	opened, at, err := c.m.cfg.Stores.Open(ctx, c.plan, in.Shared, true)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00") + "\x00" + properties))
	l := sharedList{
		store: opened, runs: at, run: path.Join(at, c.m.outputsOwner()),
		name: hex.EncodeToString(sum[:8]), turn: c.m.cfg.Self.Inc,
	}
	read := func(to io.Writer) error { return l.read(ctx, to) }
	first, err := c.m.keepSplits(c.plan, read)
	if !errors.Is(err, fs.ErrNotExist) {
		return first, l.explain(in.Shared, err)
	}
	own, err := c.m.keepSplits(c.plan, makeList)
	if err != nil {
		return nil, err
	}
	isFirst, err := l.share(ctx, func(to io.Writer) error { return own.Feed(ctx, to, &stream.Count{}) })
	if err == nil && isFirst {
		return own, nil
	}
	_ = own.Close() // it has no name and leaves nothing
	if err == nil {
		first, err = c.m.keepSplits(c.plan, read)
	}
	return first, l.explain(in.Shared, err)
}

// classSees refuses a place of this host that a class which is to write there does not see.
func (m *Manager) classSees(p plan.Plan, one plan.Output) error {
	if local := files.LocalPath(one.To); local != "" && plan.OutputByClass(p.Outputs.Format) {
		return m.cfg.Stores.Visible(p, local, true)
	}
	return nil
}

// keep keeps what the process says, on the disk of its folder, until its end says whether that is an output.
func (s *Pipes) keep(ctx context.Context, g *gathered) (left data.Left, err error) {
	spool, err := s.m.newCache(s.plan, math.MaxInt64)
	if err != nil {
		return left, err
	}
	g.spool = spool
	if left.Bytes, err = io.Copy(spool, store.Reader(ctx, s.said)); err == nil {
		err = spool.Done()
	}
	if err != nil && ctx.Err() == nil {
		at := s.plan.Process.Folder
		err = fmt.Errorf("keep it in %s until the process has ended: %w", at, transfer.Explain(err, at))
	}
	return left, err
}

// drop frees what was kept.
func (g *gathered) drop() {
	if g.spool != nil {
		_ = g.spool.Close() // it has no name and leaves nothing
	}
}

// leaveByClass has the class write what the process has said: beside outputs that are under way, and committed there by
// its own committer. Seal and the verdict give it its name, as they do with every output.
func (m *Manager) leaveByClass(
	ctx context.Context, p plan.Plan, one plan.Output, leave data.Leave, g *gathered,
) (data.Left, error) {
	defer g.drop()
	if err := leave.Begin(ctx); err != nil {
		return data.Left{}, err
	}
	url := strings.TrimRight(one.To, "/") + strings.TrimPrefix(leave.Half(), strings.TrimRight(leave.Out, "/"))
	said, to := io.Pipe()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		var count stream.Count
		to.CloseWithError(g.spool.Feed(ctx, to, &count))
	}()
	words, properties := formats.Write(p.Outputs, url)
	err := m.java(ctx, words, io.MultiReader(strings.NewReader(properties), said), io.Discard)
	_ = said.Close()
	<-fed
	if err != nil {
		if gone := leave.Store.Remove(context.WithoutCancel(ctx), leave.Half()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return data.Left{}, fmt.Errorf("by %s: %w", p.Outputs.Format, err)
	}
	entries, err := leave.Store.List(ctx, leave.Half())
	if err != nil {
		return data.Left{}, err
	}
	return data.Left{Files: len(entries), Bytes: g.left.Bytes}, leave.Seal(ctx)
}
