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
	"slices"
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
	own  []string // once known
	all  int      // once known
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
	if len(c.own) == 0 {
		return nil
	}
	out := &feedCount{to: to, count: count}
	words, properties := formats.Read(in)
	err := c.m.java(ctx, words, strings.NewReader(properties+strings.Join(c.own, "")), out)
	switch {
	case out.err != nil:
		return out.err
	case err != nil:
		return &stream.ReadError{Path: "by " + in.Format, Err: err}
	}
	count.Splits += len(c.own)
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
	if c.all > 0 {
		return nil
	}
	text, err := c.list(ctx)
	if err != nil {
		return err
	}
	all := slices.Collect(strings.Lines(text))
	if len(all) == 0 {
		return fmt.Errorf("the class has made none of %s", strings.Join(in.From[0].From, ", "))
	}
	c.all = len(all)
	for _, line := range stream.Assign(stream.Turn{Workers: in.Workers, Worker: in.Worker, Shuffle: in.Shuffle}, all) {
		c.own = append(c.own, strings.Clone(line)) // the run keeps these, and not the whole list
	}
	c.m.cfg.Log.Info("inputs assigned", "splits", c.all, "own", len(c.own), "format", in.Format)
	if c.all < in.Workers && (in.Worker == 0 || len(c.own) == 0) {
		c.m.warnFewSplits(c.all, in)
	}
	return nil
}

// mostSplits bounds the list of splits, in bytes: some 80,000 of them. The agent holds the list for a moment.
const mostSplits = 16 << 20

// list is the list of all splits, a line each: that of the reader who was first to have made it.
func (c *classes) list(ctx context.Context) (string, error) {
	in := c.plan.Inputs
	if in.Shared == "" {
		return c.make(ctx)
	}
	opened, at, err := c.m.cfg.Stores.Open(ctx, c.plan, in.Shared, true)
	if err != nil {
		return "", err
	}
	words, properties := formats.Splits(in)
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00") + "\x00" + properties))
	l := sharedList{
		store: opened, runs: at, run: path.Join(at, c.m.outputsOwner()),
		name: hex.EncodeToString(sum[:8]), turn: c.m.cfg.Self.Inc,
	}
	text, err := l.read(ctx)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, l.explain(in.Shared, err)
	}
	if text, err = c.make(ctx); err != nil {
		return "", err
	}
	text, err = l.share(ctx, text)
	return text, l.explain(in.Shared, err)
}

func (c *classes) make(ctx context.Context) (string, error) {
	out := &boundedText{}
	words, properties := formats.Splits(c.plan.Inputs)
	err := c.m.java(ctx, words, strings.NewReader(properties), out)
	return out.String(), err
}

type boundedText struct{ bytes.Buffer }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostSplits {
		return 0, fmt.Errorf("the list of splits is longer than %d bytes", mostSplits)
	}
	return b.Buffer.Write(p)
}

// sharedList is a list of splits in a store that all readers see:
//
//	<runs>/<run>/half-<name>-<turn>/list  while it is written
//	<runs>/<run>/<name>/list              then, by one rename, of whoever is first
type sharedList struct {
	store      store.Store
	runs, run  string // runs is the folder above the runs' own
	name, turn string
}

func (l sharedList) explain(url string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("share the list of splits in %s: %w", url, store.Refused(l.runs, err))
}

func (l sharedList) read(ctx context.Context) (text string, err error) {
	content, err := l.store.Open(ctx, path.Join(l.run, l.name, "list"), store.Position{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	b, err := io.ReadAll(io.LimitReader(content, mostSplits))
	return string(b), err
}

// share gives the list to all, or returns that of the reader who was faster. It removes no other run's: one of the same
// name in another registry may be at work.
func (l sharedList) share(ctx context.Context, text string) (string, error) {
	half := path.Join(l.run, "half-"+l.name+"-"+l.turn)
	if err := l.store.Remove(ctx, half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	file, err := l.store.Create(ctx, path.Join(half, "list"))
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	if err = l.store.Rename(ctx, half, path.Join(l.run, l.name)); err == nil {
		return text, nil
	}
	first, unread := l.read(ctx)
	if unread != nil {
		return "", err
	}
	_ = l.store.Remove(ctx, half) // it goes with the run at the latest
	return first, nil
}

// forgetSplits removes the lists of a run that has its verdict.
func (m *Manager) forgetSplits(ctx context.Context, p plan.Plan) {
	if p.Inputs == nil || p.Inputs.Shared == "" {
		return
	}
	opened, at, err := m.cfg.Stores.Open(ctx, p, p.Inputs.Shared, true)
	if err == nil {
		err = opened.Remove(ctx, path.Join(at, m.outputsOwner()))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.cfg.Log.Warn("list of splits not removed", "in", p.Inputs.Shared, "err", err)
	}
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
	folder, err := s.m.instanceRoot(s.plan)
	if err != nil {
		return left, err
	}
	spool, err := stream.NewCache(folder, math.MaxInt64)
	if err = errors.Join(err, folder.Close()); err != nil {
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
