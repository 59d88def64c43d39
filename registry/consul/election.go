package consul

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// When nobody conducts, members of the lowest ranks try first, so that a thousand do not try at once. Members that have
// just joined try after the others, because the others know that the gang is not all new. Newcomers without an index
// try only when no member did.
const (
	electStep        = 50 * time.Millisecond
	electRanks       = 40
	electJitter      = 50 * time.Millisecond
	electLow         = 2 * time.Second // newcomers
	electHigh        = 4 * time.Second
	resignTime       = 5 * time.Second
	conductorSession = "conductor"
)

// conductorLock is the right to conduct: the session that locks the directive.
type conductorLock struct {
	session string
	handed  bool // the last conductor stepped down when this agent was a member already
}

// inherit starts with a lock that this newcomer holds, because it has founded the app or its run.
func (g *gang) inherit(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inherited = &conductorLock{session: session}
}

// conduct conducts whenever nobody else does, until this agent's part ends or resigns.
func (g *gang) conduct() {
	defer close(g.conducted)
	g.mu.Lock()
	b := g.inherited
	g.mu.Unlock()
	for {
		if b == nil {
			if b = g.elect(); b == nil {
				return
			}
		}
		g.conductUnder(b)
		b = nil
	}
}

// await waits until this part no longer conducts. It must have started and resigned.
func (g *gang) await(ctx context.Context) error {
	select {
	case <-g.conducted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gang) began() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.started
}

// vacant tells whether an agent of that run may conduct: a conductor is needed and there is none. After the verdict
// none is needed. Another run may have another definition, and rules that this build does not know.
func vacant(last *seenDirective, lost bool, run string) bool {
	return last != nil && !lost && last.session == "" && last.directive.Act != registry.ActStop &&
		last.directive.Run == run
}

// elect waits until nobody conducts and takes the directive's lock (T6); nil when the part ends.
func (g *gang) elect() *conductorLock {
	for {
		last, lost, changed := g.directive.now()
		if !vacant(last, lost, g.me.Run) {
			if !g.until(changed, nil) {
				return nil
			}
			continue
		}
		turn := time.NewTimer(g.electDelay(last.directive))
		came := g.until(changed, turn.C)
		turn.Stop()
		if !came {
			return nil
		}
		if now, lost, _ := g.directive.now(); !vacant(now, lost, g.me.Run) || now.index != last.index {
			continue // another agent was faster
		}
		handed := g.wasHanded() // its own directive is not the last conductor's
		b, err := g.lockDirective(last)
		if b != nil {
			b.handed = handed
			return b
		}
		if err != nil && g.ctx.Err() == nil {
			g.log.Debug("election failed", "err", err)
			_ = pause(g.ctx, jitter(electJitter, 4*electJitter))
		}
	}
}

// until waits for a change or the timer; false when this part ends or resigns.
func (g *gang) until(changed <-chan struct{}, timer <-chan time.Time) bool {
	select {
	case <-changed:
		return true
	case <-timer:
		return true
	case <-g.stepDown:
	case <-g.ctx.Done():
	}
	return false
}

func (g *gang) electDelay(d registry.Directive) time.Duration {
	g.mu.Lock()
	in := g.instance
	g.mu.Unlock()
	if in == nil {
		return jitter(electLow, electHigh)
	}
	turn := min(rankOf(g.me.Facts, d, *in), electRanks)
	if d.Act == registry.ActRun && time.Since(g.since()) < g.times.Expiry() {
		turn += min(g.me.Facts.World(d), electRanks)
	}
	return time.Duration(turn)*electStep + jitter(0, electJitter)
}

// wasHanded tells whether the last conductor stepped down when this agent was a member already.
func (g *gang) wasHanded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.handed
}

// since is when this agent first saw the directive.
func (g *gang) since() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came
}

// lockDirective is T6.
func (g *gang) lockDirective(last *seenDirective) (*conductorLock, error) {
	session, err := g.makeSession(g.ctx, conductorSession, api.SessionBehaviorRelease)
	if err != nil {
		return nil, err
	}
	d := last.directive
	d.By, d.Seq = g.me.Member.Inc, d.Seq+1
	value := encode(d)
	res, err := g.takeLock(last.index, session, value)
	if err == nil {
		g.observe(&api.KVPair{
			Key: g.keys.directive(), Value: value, ModifyIndex: res.index(g.keys.directive()),
			Session: session,
		}, unsure)
		return &conductorLock{session: session}, nil
	}
	// After an unknown result the lock decides: only this agent knows its session.
	if readErr := g.refresh(g.ctx); readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	if now, _, _ := g.directive.now(); now != nil && now.session == session {
		return &conductorLock{session: session}, nil
	}
	return nil, errors.Join(err, g.calls.destroySession(g.ctx, session))
}

// takeLock locks the directive. What was asked of a run in which nobody takes part goes: nobody is there to serve it,
// and who takes the run up again does not want it.
func (g *gang) takeLock(index uint64, session string, value []byte) (results, error) {
	live, err := g.lives(g.ctx, g.keys)
	if err != nil {
		return nil, err
	}
	return g.calls.commit(g.ctx, g.keys.elect(session, index, value, len(live) == 0)...)
}

// conductUnder conducts until the lock is lost or released, or no conductor is needed.
func (g *gang) conductUnder(b *conductorLock) {
	g.mail.send(registry.Conducting{On: true})
	g.log.Info("conducting", "app", g.me.App)
	ctx, cancel := context.WithCancel(g.ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		defer cancel()
		g.renewConductor(ctx, b.session)
	})
	c := newConducting(g, *b)
	err := c.run(ctx)
	cancel()
	c.close()
	renewal.Wait()
	if errors.Is(err, errDone) {
		g.releaseLock(b.session)
	} else { // a restored copy has the lock still, and nobody could conduct until its session ends by itself
		_ = g.calls.destroySession(g.ctx, b.session)
	}
	g.log.Info("stopped conducting", "app", g.me.App, "why", err)
	g.mail.send(registry.Conducting{On: false})
}

// renewConductor renews the conductor's session until it has ended.
func (g *gang) renewConductor(ctx context.Context, session string) {
	beat := time.NewTicker(g.times.Renew)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		if errors.Is(g.calls.renewSession(ctx, session, g.times.Request), errSessionGone) {
			return
		}
	}
}

// releaseLock is T16.
func (g *gang) releaseLock(session string) {
	ctx, cancel := context.WithTimeout(g.ctx, resignTime)
	defer cancel()
	for range 3 { // the directive may have been written since it was last seen
		last, _, _ := g.directive.now()
		if last == nil || last.session != session {
			break
		}
		d := last.directive
		d.By = "" // nobody: members that see it know that the gang was never without anybody
		value := encode(d)
		res, err := g.calls.commit(ctx, g.keys.stepDown(session, last.index, value)...)
		if err == nil {
			g.observe(&api.KVPair{
				Key: g.keys.directive(), Value: value,
				ModifyIndex: res.index(g.keys.directive()),
			}, unsure)
			break
		}
		if g.refresh(ctx) != nil {
			break
		}
	}
	_ = g.calls.destroySession(ctx, session) // it ends by itself
}
