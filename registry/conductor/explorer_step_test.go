package conductor_test

// label names one step: what, by which agent, and one more number.
type label struct {
	what string
	a, x uint8
}

// fair tells the steps that a working system takes by itself from faults and from the user.
func (l label) fair() bool {
	switch l.what {
	case "CRASH", "CUT", "process fails", "user asks to stop", "user asks to save":
		return false
	}
	return true
}

type emit func(world, label)

// next emits every successor.
func (x *explorer) next(w world, out emit) {
	x.environment(w, out)
	for i := range x.s.Agents {
		if w.Agents[i].St == alive {
			x.agent(w, i, out)
			x.conductor(w, i, out)
		}
	}
}

func (x *explorer) environment(w world, out emit) {
	x.launches(w, out)
	if w.Faults.Stops > 0 && !w.Ask {
		t := w
		t.Ask, t.Faults.Stops = true, t.Faults.Stops-1
		out(t, label{what: "user asks to stop"})
	}
	if w.Faults.Saves > 0 && !w.Save {
		t := w
		t.Save, t.Faults.Saves = true, t.Faults.Saves-1
		out(t, label{what: "user asks to save"})
	}
	for i := range x.s.Agents {
		x.sessions(w, i, out)
		if w.Agents[i].St == alive {
			x.mishaps(w, i, out)
		}
	}
}

// launches: the resource manager launches a rank anew, rightly or wrongly, on the same host or elsewhere.
func (x *explorer) launches(w world, out emit) {
	n := x.s.nextAgent(&w)
	if n == x.s.Agents {
		return
	}
	for r := range x.s.Ranks {
		have := x.s.aliveOf(&w, r)
		if have >= 2 || have == 1 && w.Faults.Dups == 0 {
			continue
		}
		t := w
		if have == 1 {
			t.Faults.Dups--
		}
		t.Agents[n] = wAgent{St: alive, Host: lastHost(&w, r), Rank: r}
		out(t, label{"launched on the same host", n, r})
		t.Agents[n].Host = 10 + n
		out(t, label{"launched on another host", n, r})
	}
}

func (x *explorer) sessions(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.St == unborn {
		return
	}
	gone := a.St == dead || a.Cut
	if !gone && w.Faults.Spurious == 0 {
		return
	}
	t := w
	if !gone {
		t.Faults.Spurious--
	}
	if a.Sess {
		u := t
		u.endSession(i)
		out(u, label{"member session ends", i, 0})
	}
	if w.Lock == i+1 {
		t.Lock = 0
		out(t, label{"conductor session ends", i, 0})
	}
}

func (x *explorer) mishaps(w world, i uint8, out emit) {
	a := w.Agents[i]
	if w.Faults.Crashes > 0 {
		t := w
		t.Faults.Crashes--
		if !x.s.Orphans {
			t.Agents[i].Proc = 0 // the process dies with its agent
		}
		t.Agents[i].die()
		out(t, label{"CRASH", i, 0})
	}
	if a.Cut {
		t := w
		t.Agents[i].Cut = false
		out(t, label{"heal", i, 0})
	} else if w.Faults.Cuts > 0 {
		t := w
		t.Faults.Cuts--
		t.Agents[i].Cut = true
		out(t, label{"CUT", i, 0})
	}
	if a.Proc == 0 {
		return
	}
	t := w
	t.Agents[i].Proc, t.Agents[i].Exit = 0, 1
	if x.s.Order && a.Rank == 0 {
		t.Up = a.Proc
		if x.s.Instance {
			t.Up = noMore
		}
	}
	out(t, label{"process ends with 0", i, 0})
	if w.Faults.Fails > 0 {
		t := w
		t.Faults.Fails--
		t.Agents[i].Proc, t.Agents[i].Exit = 0, 1+clsApp
		if x.s.Instance {
			t.Agents[i].Exit = 0 // restarted in place: same generation, same ports
		}
		if x.s.Instance && x.s.Retry > 0 { // what restarts in place is explored without it: here the failure is for good
			t.Agents[i].Exit = 1 + clsFinal
		}
		out(t, label{"process fails", i, 0})
	}
}

// agent: the rules of one member. Everything that needs the registry needs !Cut.
func (x *explorer) agent(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Cut {
		if !a.Quiet && a.Claimed {
			t := w
			t.Agents[i].Proc, t.Agents[i].Quiet = 0, true
			if a.Exit == 0 && (!x.s.Instance || x.s.FenceReports) {
				t.Agents[i].Exit = 1 + clsRegistry
			}
			out(t, label{"fences itself", i, 0})
		}
		x.local(w, i, out)
		return
	}
	if a.Seen != w.Cur+1 {
		t := w
		t.Agents[i].Seen = w.Cur + 1
		out(t, label{"learns the directive", i, w.Cur})
	}
	switch {
	case !a.Claimed:
		x.newcomer(w, i, out)
	case !a.Sess:
		x.reattach(w, i, out)
		x.local(w, i, out)
	default:
		x.local(w, i, out)
		x.member(w, i, out)
	}
}

// member: what an agent with a valid session writes.
func (x *explorer) member(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Seen == 0 {
		return
	}
	r := a.Rank
	mine := w.Live[r] == i+1                                  // check-session live
	if x.s.Instance && a.Quiet && mine && !x.s.FenceReports { // contact again, the index is still mine: go on in place
		t := w
		t.Agents[i].Quiet = false
		out(t, label{"fence lifted", i, 0})
	}
	d := w.Dirs[a.Seen-1]
	if d.Act == actStop {
		x.leave(w, i, out)
		return
	}
	x.acknowledge(w, i, d, mine, out)
	if mine && d.Save > w.Mem[r].Saved {
		t := w
		t.Mem[r].Saved = d.Save
		out(t, label{"answers a save", i, d.Save})
	}
	if d.Act == actRun && d.Gen == a.Gen && !x.s.mine(d, i, a) && w.Mem[r].Ph == phReady && x.s.Without != withoutMismatch && mine {
		t := w
		t.Mem[r].Ph, t.Mem[r].Cls, t.Mem[r].ExitGen = phFailed, clsMismatch, a.Gen
		t.Ready[r] = [2]uint8{}
		out(t, label{"reports a row mismatch", i, 0})
	}
	if a.Up && a.Proc == a.Gen && mine && w.Mem[r].Ph == phReady && w.Mem[r].Up != a.Gen {
		t := w
		t.Mem[r].Up = a.Gen
		out(t, label{"reports that it is up", i, a.Gen})
	}
	if a.Exit != 0 && mine && w.Mem[r].Ph == phReady && w.Mem[r].Gen == a.Gen {
		t := w
		t.Mem[r].Ph, t.Mem[r].ExitGen = phEnded, a.Gen
		if a.Exit > 1 {
			t.Mem[r].Ph, t.Mem[r].Cls = phFailed, a.Exit-1
		}
		t.Ready[r] = [2]uint8{}
		t.Agents[i].Quiet = false
		out(t, label{"reports", i, a.Exit})
	}
}

// acknowledge is T4, and T4b after a fence.
func (x *explorer) acknowledge(w world, i uint8, d wDir, mine bool, out emit) {
	a := w.Agents[i]
	r := a.Rank
	acked := d.Gen <= a.Gen
	if x.s.Without != withoutAckAgain && d.Gen == a.Gen && w.Mem[r].Ph == phFailed && a.Seen == w.Cur+1 {
		acked = false
	}
	gone := a.Proc == 0 || x.s.Without == withoutKillFirst
	finished := x.s.Instance && a.Exit == 1 && a.Gen >= d.Anew // stays finished
	waiting := d.Act == actWait && !acked && gone && !finished
	// instance scope: a replacement with the row's address joins the running generation
	joins := x.s.Instance && d.Act == actRun && a.Gen < d.Gen && a.Proc == 0 && !finished && d.Roster[r].Host == a.Host
	if !mine || !waiting && !joins {
		return
	}
	t := w
	t.Agents[i].Gen, t.Agents[i].Exit, t.Agents[i].Quiet = d.Gen, 0, false
	t.Mem[r].Gen, t.Mem[r].Ph, t.Mem[r].Cls, t.Mem[r].ExitGen = d.Gen, phReady, clsNone, 0
	t.Ready[r] = [2]uint8{i + 1, d.Gen}
	out(t, label{"acknowledges", i, d.Gen})
}

func (x *explorer) leave(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Proc != 0 {
		return
	}
	t := w
	if a.Claimed {
		t.Mem[a.Rank].Ph = phLeft
		t.endSession(i)
	}
	if t.Lock == i+1 {
		t.Lock = 0
	}
	t.Agents[i].die()
	out(t, label{"leaves", i, 0})
}

// local: what an agent does without the registry, from the directive that it read last.
func (x *explorer) local(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Seen == 0 || !a.Claimed {
		return
	}
	d := w.Dirs[a.Seen-1]
	if a.Proc > 0 && (d.Gen > a.Proc || d.Act == actStop) {
		t := w
		t.Agents[i].Proc = 0
		out(t, label{"kills its process", i, a.Proc})
	}
	if x.s.Order && a.Rank == 0 && a.Proc > 0 && !a.Up {
		t := w
		t.Agents[i].Up, t.Up = true, max(w.Up, a.Proc)
		out(t, label{"is up", i, a.Proc})
	}
	held := d.Held && a.Rank > 0
	if d.Act == actRun && d.Gen == a.Gen && a.Proc == 0 && a.Exit == 0 && !a.Quiet && !held && x.s.mine(d, i, a) {
		t := w
		t.Agents[i].Proc, t.Agents[i].Up = d.Gen, false
		out(t, label{"starts its process", i, d.Gen})
	}
}

// newcomer claims what the real Decide lets it claim. The transaction checks every key that the
// decision rests on, and the proof of a death is a stable fact, so one step is a faithful model.
func (x *explorer) newcomer(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Seen > 0 && w.Dirs[a.Seen-1].Act == actStop {
		x.leave(w, i, out)
		return
	}
	c := x.claims(&w, i)
	if !c.ok {
		return
	}
	r, t := a.Rank, w
	if c.evict {
		t.endSession(w.Live[r] - 1)
	}
	if c.clear {
		t.Agents[w.Mem[r].Inc-1].Proc = 0 // what an orphan left behind on this host is killed first
	}
	if t.Live[r] != 0 {
		return // check-not-exists live
	}
	t.Agents[i].Claimed, t.Agents[i].Sess = true, true
	t.Agents[i].Seen = w.Cur + 1 // `get directive` in the same transaction
	t.Live[r] = i + 1
	t.Mem[r] = c.record
	out(t, label{"claims", i, r})
}

// reattach is T9; refused, the agent has been superseded.
func (x *explorer) reattach(w world, i uint8, out emit) {
	a := w.Agents[i]
	r := a.Rank
	m := w.Mem[r]
	t := w
	if m.Inc == i+1 && m.Ph != phLost && w.Live[r] == 0 {
		t.Agents[i].Sess = true
		t.Live[r] = i + 1
		if m.Ph == phReady && a.Exit == 0 {
			t.Ready[r] = [2]uint8{i + 1, a.Gen}
		}
		out(t, label{"re-attaches", i, 0})
		return
	}
	t.Agents[i].Proc = 0
	if t.Lock == i+1 {
		t.Lock = 0
	}
	t.Agents[i].die()
	out(t, label{"is superseded", i, 0})
}

// conductor reads, then acts on the view by transactions that carry check-session and check-index on
// the directive.
func (x *explorer) conductor(w world, i uint8, out emit) {
	a := w.Agents[i]
	if a.Cut {
		return
	}
	may := a.Claimed && a.Sess || !a.Claimed && x.s.Without != withoutNewcomers
	if w.Lock == 0 && may && !a.Cond {
		t := w
		t.Lock = i + 1
		t.Agents[i].Cond, t.Agents[i].View = true, wView{}
		out(t, label{"conducts", i, 0})
	}
	if !a.Cond {
		return
	}
	checks := x.s.Without != withoutChecks
	if w.Lock != i+1 && checks {
		t := w
		t.Agents[i].Cond, t.Agents[i].View = false, wView{}
		out(t, label{"conducts no longer", i, 0})
		return
	}
	again := w // a refused transaction: read anew
	again.Agents[i].View = wView{}
	switch v := a.View; {
	case !v.Keys:
		x.readKeys(w, i, out)
	case !v.Recs:
		x.readRecords(w, i, out)
	case v.Dir != w.Cur && checks:
		out(again, label{"is refused, reads anew", i, 0})
	default:
		x.act(w, i, v, out)
		if w.Dirs[v.Dir].Act != actStop {
			out(again, label{"reads anew", i, 0})
		}
	}
}

func (x *explorer) readKeys(w world, i uint8, out emit) {
	t := w
	v := wView{Keys: true, Dir: w.Cur, Ask: w.Ask, Save: w.Save}
	for r := range x.s.Ranks {
		v.Ready[r] = w.Ready[r][0] != 0 && w.Ready[r][1] == w.Dirs[w.Cur].Gen
	}
	t.Agents[i].View = v
	out(t, label{"reads keys", i, 0})
}

func (x *explorer) readRecords(w world, i uint8, out emit) {
	t := w
	v := &t.Agents[i].View
	v.Recs, v.Mem = true, w.Mem
	for r := range x.s.Ranks {
		v.Live[r] = w.Live[r] != 0
	}
	out(t, label{"reads records", i, 0})
}

// act carries out what the real Step says about the view, now or after any time.
func (x *explorer) act(w world, i uint8, v wView, out emit) {
	for _, e := range x.rules(w.Dirs[v.Dir], v) {
		t := w
		t.Agents[i].View = wView{}
		if e.lost {
			r := e.rank
			// check-not-exists live, cas members; and the axiom of time
			old := w.Agents[w.Mem[r].Inc-1]
			if w.Live[r] != 0 || w.Mem[r] != v.Mem[r] || old.St != dead && !old.Quiet && !x.s.NoAxiom {
				continue
			}
			t.Mem[r].Ph = phLost
			out(t, label{"declares lost", i, r})
			continue
		}
		if t.Cur++; t.Cur >= maxDirs {
			panic("raise maxDirs")
		}
		t.Dirs[t.Cur] = e.dir
		t.Dirs[t.Cur].Stale = x.s.stale(e, v)
		if e.name == "SAVES" {
			t.Save, t.Dirs[t.Cur].Early = false, x.s.early(w.Dirs[v.Dir], v)
		}
		if e.dir.Act == actWait && e.dir.Anew == e.dir.Gen && t.Up == noMore {
			t.Up = e.dir.Gen - 1 // the first must come up again
		}
		out(t, label{e.name, i, e.dir.Gen})
	}
}

// early tells that somebody whom the conductor saw at work had not answered the save before. Who comes at this moment
// answers both.
func (s setting) early(d wDir, v wView) bool {
	for r := range s.Ranks {
		if v.Ready[r] && v.Mem[r].Ph == phReady && v.Mem[r].Saved < d.Save {
			return true
		}
	}
	return false
}

// stale tells that a decision was taken from a result that is older than the generation in which the gang was formed
// anew.
func (s setting) stale(e ruled, v wView) bool {
	ended := uint8(0)
	for r := range s.Ranks {
		m := v.Mem[r]
		old := max(m.Gen, m.ExitGen) < e.dir.Anew
		if e.name == "SEALS" && !v.Ready[r] && old {
			return true
		}
		if m.Ph == phEnded && !old {
			ended++
		}
	}
	want := s.Ranks
	if s.Enough > 0 {
		want = s.Enough
	}
	return e.dir.Anew > 0 && e.name == "VERDICT succeeded" && ended < want
}
