package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/store"
)

// feeding is the share of the inputs that the process reads from stdin: assigned once, fed again at each start.
type feeding struct {
	source stream.Source
	inputs *plan.Inputs
	over   <-chan struct{} // closed when the current feeding has ended; nil: there was none
}

// bringStream assigns the instance its splits. It reads nothing of them yet.
func (m *Manager) bringStream(ctx context.Context, p plan.Plan) error {
	in := p.Inputs
	if plan.InputByClass(in.Format) {
		return m.bringClass(p)
	}
	var all []transfer.File
	for _, one := range in.From {
		files, err := m.listInput(ctx, p, one)
		if err != nil {
			return fmt.Errorf("input %s: %w", one.Name, err)
		}
		if files = slices.DeleteFunc(files, stream.Hidden); len(files) == 0 {
			return fmt.Errorf("input %s: all files in %s have names that begin with _ or ., which Hadoop's formats "+
				"pass over", one.Name, strings.Join(one.From, ", "))
		}
		all = append(all, files...)
	}
	form, _ := plan.InputForm(in.Format) // the plan has checked it
	reading := stream.Reading{
		Form: form, Want: in.Splits, Lines: in.Lines, Again: m.streamTransfer(in).Persevere,
		Turn: stream.Turn{Workers: in.Workers, Worker: in.Worker, Shuffle: in.Shuffle},
	}
	if in.Separator != "" {
		reading.Separator = in.Separator[0]
	}
	share, err := reading.Share(all)
	if errors.Is(err, stream.ErrCodec) {
		return fault.Definition(err)
	}
	if err != nil {
		return err
	}
	m.tellShare(share, in, len(all), form)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeding = &feeding{source: share, inputs: in}
	return nil
}

// tellShare logs what the instance gets, and that some get nothing.
func (m *Manager) tellShare(share *stream.Share, in *plan.Inputs, files int, form plan.RecordForm) {
	m.cfg.Log.Info("inputs assigned", "files", files, "splits", share.All, "own", len(share.Splits), "format",
		string(form))
	if share.All >= 0 && share.All < in.Workers && (in.Worker == 0 || len(share.Splits) == 0) {
		m.warnFewSplits(share.All, in)
	}
}

// warnFewSplits warns that some instances get nothing.
func (m *Manager) warnFewSplits(splits int, in *plan.Inputs) {
	m.cfg.Log.Warn("fewer splits than instances", "splits", splits, "instances", in.Workers, "remedy",
		"set muster.inputs.splits to how many there are to be")
}

// streamTransfer has the retries of inputs.
func (m *Manager) streamTransfer(in *plan.Inputs) transfer.Transfer {
	t := m.inputTransfer(in)
	t.Again = func(file, why string) { m.cfg.Log.Warn("input read again", "file", file, "err", why) }
	return t
}

// Pipes are the stdin and stdout of one start where data flows through them. The manager closes the process's ends once
// the process has them.
type Pipes struct {
	m    *Manager
	plan plan.Plan

	stdin, feed *os.File
	stdout      *os.File
	said        *sandbox.Outlet
}

// Stdin is the process's end; nil: it reads no data there.
func (s *Pipes) Stdin() *os.File { return s.stdin }

// Stdout is the process's end; nil: it is a log.
func (s *Pipes) Stdout() *os.File { return s.stdout }

// Pipes makes the pipes that the plan asks for.
func (m *Manager) Pipes(p plan.Plan) (_ *Pipes, err error) {
	s := &Pipes{m: m, plan: p}
	m.mu.Lock()
	feeds := m.feeding != nil
	m.mu.Unlock()
	if feeds {
		if s.stdin, s.feed, err = sandbox.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if _, says := stdoutOutput(p); says {
		if s.stdout, s.said, err = sandbox.StdoutPipe(); err != nil {
			s.Abandon()
			return nil, err
		}
	}
	if u := m.cfg.Stores.Owner(); u != nil && os.Geteuid() == 0 {
		for _, f := range s.theirs() {
			if err := f.Chown(u.UID, u.GID); err != nil { // so that it may open /dev/stdin
				s.Abandon()
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *Pipes) theirs() []*os.File {
	return slices.DeleteFunc([]*os.File{s.stdin, s.stdout}, func(f *os.File) bool { return f == nil })
}

// release closes the process's ends: it has them, or will not have them.
func (s *Pipes) release() {
	for _, f := range s.theirs() {
		_ = f.Close() // only the process uses it
	}
}

// Abandon closes all pipes: nothing has started.
func (s *Pipes) Abandon() {
	s.release()
	if s.feed != nil {
		_ = s.feed.Close() // nobody reads it
	}
	if s.said != nil {
		_ = s.said.Close() // nobody writes to it
	}
}

// Begin feeds the process and reads its stdout until over is closed.
func (s *Pipes) Begin(over <-chan struct{}) {
	s.release()
	if s.feed != nil {
		s.beginFeeding(over)
	}
	if s.said != nil {
		s.beginGathering(over)
	}
}

func (s *Pipes) beginFeeding(over <-chan struct{}) {
	s.m.mu.Lock()
	f, before, done := s.m.feeding, s.m.feeding.over, make(chan struct{})
	f.over = done
	s.m.mu.Unlock()
	ctx, cancel := context.WithCancel(s.m.ctx)
	s.m.tasks.Go(func() {
		select {
		case <-over:
		case <-ctx.Done():
		case <-done:
			return
		}
		cancel()
		_ = s.feed.SetWriteDeadline(time.Unix(1, 0)) // closed, it is not written to any more
	})
	s.m.tasks.Go(func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before
		}
		s.feedAll(ctx, f)
	})
}

// feedAll feeds every epoch. A process may stop reading; a file that cannot be read ends the process.
func (s *Pipes) feedAll(ctx context.Context, f *feeding) {
	begun, times := time.Now(), max(f.inputs.Epochs, 1)
	cache := s.inputCache(f.inputs)
	if cache != nil {
		defer func() { _ = cache.Close() }() // it has no name and leaves nothing
	}
	var count stream.Count
	err := stream.Repeat(ctx, f.source, s.feed, times, cache, &count, func(err error) {
		s.m.cfg.Log.Warn("inputs are read again for each epoch", "cause", "the cache failed", "err", err)
	})
	if _, unread := errors.AsType[*stream.ReadError](err); unread && ctx.Err() == nil {
		s.cannotFeed(err)
	}
	err = errors.Join(err, s.feed.Close())
	attrs := []any{
		"bytes", count.Bytes, "records", count.Records, "splits", count.Splits, "took",
		time.Since(begun).Round(time.Millisecond),
	}
	switch {
	case err == nil:
		s.m.cfg.Log.Info("inputs are fed", append(attrs, "epochs", times)...)
	case errors.Is(err, syscall.EPIPE):
		s.m.cfg.Log.Info("inputs are fed no further: the process reads no more", attrs...)
	case ctx.Err() != nil:
		s.m.cfg.Log.Info("inputs are fed no further: the process has ended", attrs...)
	default:
		s.m.cfg.Log.Error("inputs not fed completely", append(attrs, "err", err)...)
	}
}

// cannotFeed ends the process: it must not take a part of its input for all of it.
func (s *Pipes) cannotFeed(err error) {
	why := "inputs: " + err.Error()
	if !store.Transient(err) && !plan.InputByClass(s.plan.Inputs.Format) { // else it is not the file's fault
		why += "; mend that file, or take it out of the inputs"
	}
	s.m.cfg.Process.Fail(why, err)
}

// inputCache is the source of later epochs; nil: they are read from the store again.
func (s *Pipes) inputCache(in *plan.Inputs) *stream.Cache {
	if !in.Cache || in.Epochs < 2 {
		return nil
	}
	cache, err := s.m.newCache(s.plan, int64(cmp.Or(in.CacheLimit, appdef.StreamCacheLimit))<<20)
	if err != nil {
		s.m.cfg.Log.Warn("inputs are read again for each epoch", "cause", "no cache could be made", "err", err)
		return nil
	}
	return cache
}

// newCache makes a cache on the disk of the instance's folder.
func (m *Manager) newCache(p plan.Plan, limit int64) (_ *stream.Cache, err error) {
	folder, err := m.instanceRoot(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return stream.NewCache(folder, limit)
}
