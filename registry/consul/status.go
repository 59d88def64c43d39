package consul

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// Status is everything that the registry knows about an app, read at one moment.
type Status struct {
	ID        string // app id
	App       registry.AppRecord
	Directive registry.Directive
	// Conductor is the conducting agent: its instance, or its incarnation if it has none; empty: nobody conducts.
	Conductor string
	Members   []MemberStatus // by component in the order of the names, then by index
	// Live is how many indexes are held.
	Live int
	// Verdict is the current run's, nil while it has none.
	Verdict *registry.Verdict
	// Broken says of each record of a member that does not decode which one it is, and why. It is left out.
	Broken []error
	// Index is the registry's when the directive was written: a run that began since has another one.
	Index uint64
}

// MemberStatus is one instance's record, and whether a live agent holds the index.
type MemberStatus struct {
	registry.Instance
	registry.Member
	Live bool
	// Step is of the newest checkpoint that the member has committed; nil: none.
	Step *int64
}

// Interrupted tells that the run has no verdict and no agent that could reach one: it continues when it is launched
// again.
func (s Status) Interrupted() bool { return s.Verdict == nil && s.Live == 0 && s.Conductor == "" }

// Status reads one app. The error is registry.ErrNoApp when there is none.
func (c *Client) Status(ctx context.Context, app string) (Status, error) {
	k := keysOf(app)
	res, err := c.calls.commit(ctx, statusReads(k)...)
	if err != nil {
		return Status{}, err
	}
	s := Status{ID: app}
	if err := s.read(k, res); err != nil {
		return Status{}, fmt.Errorf("app %s: %w", app, err)
	}
	return s, nil
}

// readsOfApp is how many operations read one app.
const readsOfApp = 5

func statusReads(k keys) []*api.TxnOp {
	return []*api.TxnOp{
		opGetOrEmpty(k.app()), opGetOrEmpty(k.directive()), opGetTree(k.members()), opGetTree(k.lives()),
		opGetTree(k.checkpoints()),
	}
}

// statuses reads some apps at one moment; those that are not there are left out. What does not decode is broken: an app
// with its record or its directive, else a member.
func (c *Client) statuses(ctx context.Context, apps []string) (all []Status, broken []error, err error) {
	var ops []*api.TxnOp
	for _, app := range apps {
		ops = append(ops, statusReads(keysOf(app))...)
	}
	res, err := c.calls.commit(ctx, ops...)
	if err != nil {
		return nil, nil, err
	}
	all, broken = decodeAll(apps, res)
	return all, broken, nil
}

func decodeAll(apps []string, res results) (all []Status, broken []error) {
	for _, app := range apps {
		s := Status{ID: app}
		switch err := s.read(keysOf(app), res); {
		case err == nil:
			all, broken = append(all, s), append(broken, s.Broken...)
		case !errors.Is(err, registry.ErrNoApp):
			broken = append(broken, err)
		}
	}
	return all, broken
}

func (s *Status) read(k keys, res results) error {
	record, directive := res.at(k.app()), res.at(k.directive())
	if record == nil || directive == nil {
		return registry.ErrNoApp
	}
	var err error
	if s.App, err = decode[registry.AppRecord](record.Key, record.Value); err != nil {
		return err
	}
	if s.Directive, err = decode[registry.Directive](directive.Key, directive.Value); err != nil {
		return err
	}
	s.Verdict, s.Index = s.Directive.Verdict, directive.ModifyIndex
	s.readMembers(k, res)
	if directive.Session != "" {
		s.Conductor = s.Directive.By
		if i := slices.IndexFunc(s.Members, func(m MemberStatus) bool { return m.Inc == s.Directive.By }); i >= 0 {
			s.Conductor = s.Members[i].Instance.String()
		}
	}
	return nil
}

func (s *Status) readMembers(k keys, res results) {
	for key, pair := range res {
		if _, ok := instanceAt(k.lives(), key); ok && pair.Session != "" {
			s.Live++
		}
		in, ok := instanceAt(k.members(), key)
		if !ok {
			continue
		}
		m, err := decode[registry.Member](key, pair.Value)
		if err != nil {
			s.Broken = append(s.Broken, err)
			continue
		}
		live := res.at(k.live(in))
		one := MemberStatus{Instance: in, Member: m, Live: live != nil && live.Session != ""}
		if pair := res.at(k.checkpoint(in)); pair != nil {
			if c, err := decode[registry.Checkpoint](pair.Key, pair.Value); err == nil { // the rest is worth showing
				one.Step = c.Newest()
			}
		}
		s.Members = append(s.Members, one)
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return compareInstances(a.Instance, b.Instance) })
	slices.SortFunc(s.Broken, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

func compareInstances(a, b registry.Instance) int {
	if c := strings.Compare(a.Component, b.Component); c != 0 {
		return c
	}
	return a.Index - b.Index
}

// Apps reads all apps, by name, but those that are known. It leaves out apps that are being founded or forgotten at
// this moment, and those whose records do not decode: broken says of each which one, and why, and of members as well.
func (c *Client) Apps(ctx context.Context, known func(app string) bool) (all []Status, broken []error, err error) {
	names, err := c.calls.names(ctx, root, "/")
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 { // Consul leaves out what the token may not see: are there none?
		if _, err := c.calls.get(ctx, root, byDefault); err != nil {
			return nil, nil, err
		}
	}
	var wanted []string
	for _, name := range names {
		if app := strings.TrimSuffix(strings.TrimPrefix(name, root), "/"); known == nil || !known(app) {
			wanted = append(wanted, app)
		}
	}
	type part struct {
		all    []Status
		broken []error
	}
	parts, err := inParts(wanted, mostOps/readsOfApp, func(some []string) (p part, err error) {
		p.all, p.broken, err = c.statuses(ctx, some)
		return p, err
	})
	for _, p := range parts {
		all, broken = append(all, p.all...), append(broken, p.broken...)
	}
	return all, broken, err
}

// Unchanged are those of apps whose directive was not written since the registry had that index.
func (c *Client) Unchanged(ctx context.Context, since map[string]uint64) ([]string, error) {
	apps := slices.Collect(maps.Keys(since))
	parts, err := inParts(apps, mostOps, func(some []string) (same []string, err error) {
		keys := make([]string, len(some))
		for i, app := range some {
			keys[i] = keysOf(app).directive()
		}
		res, err := c.calls.readKeys(ctx, byDefault, keys...)
		for i, app := range some {
			if pair := res.at(keys[i]); err == nil && pair != nil && pair.ModifyIndex == since[app] {
				same = append(same, app)
			}
		}
		return same, err
	})
	return slices.Concat(parts...), err
}

// inParts reads so many apps in a request, and some requests at a time.
func inParts[T any](apps []string, most int, read func(some []string) (T, error)) ([]T, error) {
	parts := slices.Collect(slices.Chunk(apps, most))
	found, errs := make([]T, len(parts)), make([]error, len(parts))
	free := make(chan struct{}, readsAtOnce)
	var readers sync.WaitGroup
	for i, some := range parts {
		free <- struct{}{}
		readers.Go(func() {
			found[i], errs[i] = read(some)
			<-free
		})
	}
	readers.Wait()
	for _, err := range errs { // one says enough
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readsAtOnce is how many requests for apps are under way at a time.
const readsAtOnce = 4

// Ask stores a request for the conductor, and gives it an ID if it has none. It returns when the request is stored, not
// when it is served. The request is to the run that it names, else to the present one; the error is
// *conductor.FinishedError when that is over, and *conductor.RunError when another run has begun. What is said of a
// dead member (AskGone) holds for all runs.
func (c *Client) Ask(ctx context.Context, app string, a registry.Ask) error {
	if a.Kind == "" {
		return errors.New("ask: want a kind")
	}
	if a.ID == "" {
		a.ID = strings.ToLower(rand.Text())
	}
	return c.persist(ctx, func() error { return c.ask(ctx, app, a) })
}

func (c *Client) ask(ctx context.Context, app string, a registry.Ask) error {
	k := keysOf(app)
	pair, err := c.calls.get(ctx, k.directive(), byDefault)
	if err != nil {
		return err
	}
	if pair == nil {
		return fmt.Errorf("app %s: %w", app, registry.ErrNoApp)
	}
	d, err := decode[registry.Directive](pair.Key, pair.Value)
	if err != nil {
		return err
	}
	switch {
	case a.Kind == registry.AskGone:
	case a.Run != "" && a.Run != d.Run:
		return &conductor.RunError{Have: d.Run, Want: a.Run}
	case d.Verdict != nil:
		return &conductor.FinishedError{Verdict: *d.Verdict}
	default:
		a.Run, a.Gen = d.Run, d.Gen
	}
	_, err = c.calls.commit(ctx, k.put(a, pair.ModifyIndex)...)
	return err
}

// AskAgain stores a request again, and tells so, if the registry does not have it although the run that it names goes
// on: the registry went back to an older copy, or nobody took part in the run for a while. A request that was served is
// not made again: its verdict is there. Only what a stop asks has one.
func (c *Client) AskAgain(ctx context.Context, app string, a registry.Ask) (bool, error) {
	k := keysOf(app)
	res, err := c.calls.readKeys(ctx, consistent, k.ask(a.Kind, a.ID), k.directive(), k.verdict(a.Run))
	pair := res.at(k.directive())
	if err != nil || pair == nil || res.at(k.ask(a.Kind, a.ID)) != nil || res.at(k.verdict(a.Run)) != nil {
		return false, err
	}
	d, err := decode[registry.Directive](pair.Key, pair.Value)
	if err != nil || d.Run != a.Run || d.Verdict != nil {
		return false, err
	}
	a.Gen = d.Gen
	_, err = c.calls.commit(ctx, k.put(a, pair.ModifyIndex)...)
	return err == nil, err
}

// persist repeats an idempotent request while the registry is unreachable, until the context ends.
func (c *Client) persist(ctx context.Context, act func() error) error {
	var b backoff
	for {
		err := act()
		if !isUnknown(err) && !isRefusal(err) {
			return err
		}
		if pause(ctx, b.next()) != nil {
			return err
		}
	}
}

// Verdict reads a run's verdict, nil while there is none; run empty: the current run. The error is registry.ErrNoApp if
// the app does not exist.
func (c *Client) Verdict(ctx context.Context, app, run string) (*registry.Verdict, error) {
	k := keysOf(app)
	if run == "" {
		s, err := c.Status(ctx, app)
		return s.Verdict, err
	}
	res, err := c.calls.readKeys(ctx, byDefault, k.app(), k.verdict(run))
	if err != nil {
		return nil, err
	}
	if res.at(k.app()) == nil {
		return nil, fmt.Errorf("app %s: %w", app, registry.ErrNoApp)
	}
	pair := res.at(k.verdict(run))
	if pair == nil {
		return nil, nil // no verdict yet is an answer
	}
	v, err := decode[registry.Verdict](pair.Key, pair.Value)
	return &v, err
}

// WaitVerdict blocks until the run has a verdict; run empty: the current run. It waits for an unreachable registry. The
// error is registry.ErrNoApp if the app does not exist.
func (c *Client) WaitVerdict(ctx context.Context, app, run string) (registry.Verdict, error) {
	return c.Follow(ctx, app, run, func(registry.Directive) {})
}

// Follow is WaitVerdict that also shows each directive of the run; of several at once only the newest.
func (c *Client) Follow(ctx context.Context, app, run string, see func(registry.Directive)) (registry.Verdict, error) {
	k := keysOf(app)
	var index uint64
	var b backoff
	for {
		pair, next, err := c.watch.blockKey(ctx, k.directive(), index, c.times.Wait, byDefault)
		switch {
		case err == nil && pair == nil:
			index = 0
			if err := c.missing(ctx, app); err != nil {
				return registry.Verdict{}, err
			}
		case err == nil:
			b.reset()
			index = next
			d, err := decode[registry.Directive](pair.Key, pair.Value)
			if err != nil {
				return registry.Verdict{}, err
			}
			if run == "" {
				run = d.Run
			}
			if d.Run == run {
				see(d)
			}
			if d.Run == run && d.Verdict != nil {
				return *d.Verdict, nil
			}
			if d.Run == run {
				continue
			}
			v, err := c.Verdict(ctx, app, run)
			if err != nil || v != nil {
				return deref(v), err
			}
		case !isUnknown(err):
			return registry.Verdict{}, err
		}
		if err := pause(ctx, b.next()); err != nil {
			return registry.Verdict{}, err
		}
	}
}

// missing reads with consistency whether an app exists. The error is registry.ErrNoApp if it does not; nil: it does, or
// the registry does not answer.
func (c *Client) missing(ctx context.Context, app string) error {
	pair, err := c.calls.get(ctx, keysOf(app).directive(), consistent)
	if err == nil && pair == nil {
		return fmt.Errorf("app %s: %w", app, registry.ErrNoApp)
	}
	if isUnknown(err) {
		return nil
	}
	return err
}

func deref(v *registry.Verdict) registry.Verdict {
	if v == nil {
		return registry.Verdict{}
	}
	return *v
}
