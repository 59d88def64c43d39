package conductor_test

// The explorer walks through every order of events that a small gang can meet: two or three ranks, a
// few agents, faults of the environment. Claims are taken by the real Decide and rulings by the real
// Step; the agents' other rules and the transactions are modelled here, as protocol 2 and 3 have
// them. There is no time but one axiom: a member is declared lost only when its agent is dead or has
// fenced itself. Everything else may happen in any order and be delayed for ever: a read is a step,
// and the decision taken from it another, later one.

const (
	maxRanks  = 3
	maxAgents = 5  // incarnations ever launched
	maxDirs   = 16 // directives ever written
	noMore    = 255
)

// An agent is one of these.
const (
	unborn, alive, dead = 0, 1, 2
)

// The acts, in the order in which they may follow each other within a generation.
const (
	actWait, actRun, actStop = 1, 2, 3
)

// Phases of a member record.
const (
	phNone = iota
	phJoined
	phReady
	phEnded
	phFailed
	phLost
	phLeft
)

// Classes of an exit, as far as they matter here.
const (
	clsNone = iota
	clsApp
	clsRegistry
	clsMismatch
	clsFinal // clsApp, for good
)

type world struct {
	Dirs   [maxDirs]wDir
	Cur    uint8 // number of the directive in force
	Lock   uint8 // holder of the directive + 1
	Mem    [maxRanks]wMember
	Live   [maxRanks]uint8    // agent + 1
	Ready  [maxRanks][2]uint8 // agent + 1, and of which generation the key is
	Ask    bool
	Save   bool  // somebody asks to save
	Up     uint8 // generation in which rank 0 was last up, or ended with 0; noMore: it has ended for good
	Agents [maxAgents]wAgent
	Faults faults // what the environment may still do
}

type faults struct{ Crashes, Cuts, Fails, Spurious, Stops, Dups, Saves uint8 }

type wRow struct{ Inc, Host uint8 } // Inc is the agent's number + 1, 0 is nobody

type wDir struct {
	Gen, Act, Used uint8
	Retries, Anew  uint8 // how often the gang was formed anew, and in which generation the last time
	Held           bool  // of those that are ordered, only rank 0 may start
	Stale          bool  // it came of a result from before that generation
	Save           uint8 // how many saves were begun
	Early          bool  // one began while a member at work was at the one before
	Roster         [maxRanks]wRow
}

type wMember struct{ Inc, Host, Gen, Up, Ph, Cls, ExitGen, Saved uint8 }

type wAgent struct {
	St, Host, Rank uint8
	Claimed        bool
	Sess           bool  // the member session is valid
	Cut            bool  // cannot reach the registry
	Quiet          bool  // has fenced itself: no process, starts none
	Gen            uint8 // acknowledged: nothing older runs here
	Up             bool  // the process serves
	Proc           uint8 // generation of the live process, 0 none
	Exit           uint8 // 0 none, 1 ended with 0, else 1 + the class of a failure
	Seen           uint8 // number of the directive read last + 1
	Cond           bool  // believes that it conducts
	View           wView
}

// wView is what a conductor has read and not yet acted on.
type wView struct {
	Keys, Recs, Ask bool
	Save            bool
	Dir             uint8
	Ready, Live     [maxRanks]bool
	Mem             [maxRanks]wMember
}

// setting is one thing to explore.
type setting struct {
	Ranks, Agents, Budget uint8
	Faults                faults
	Retry                 uint8  // muster.retry
	Enough                uint8  // muster.complete.total.minSucceeded
	Instance              bool   // restart scope; the same host means the same ports
	NoAxiom               bool   // clocks are broken: a running member may be declared lost
	Orphans               bool   // a process survives its agent (assumption A4 taken away)
	Continued             bool   // conductors know the gang from before: never is all of it new
	Order                 bool   // all others start when rank 0 has
	FenceReports          bool   // instance scope: a fenced member reports a failure instead of going on
	Without               string // the rule taken away
}

// The rules that can be taken away.
const (
	withoutKillFirst = "acknowledge only when the process is gone"
	withoutChecks    = "check-session and check-index on the directive"
	withoutGrace     = "a lost session is not a death"
	withoutMismatch  = "report a row that is not mine"
	withoutNewcomers = "newcomers may conduct"
	withoutRecord    = "P1: the record itself says gone"
	withoutAckAgain  = "T4b: acknowledge again after a fence"
	withoutOrder     = "who is waited for must be up"
	withoutAnyPhase  = "a changed address rebuilds in any phase"
	withoutAnew      = "results from before a retry count no more"
)

func (s setting) start() world {
	var w world
	w.Dirs[0] = wDir{Gen: 1, Act: actWait}
	w.Faults = s.Faults
	for i := range s.Ranks {
		w.Agents[i] = wAgent{St: alive, Host: i + 1, Rank: i}
	}
	return w
}

func (s setting) mine(d wDir, i uint8, a wAgent) bool {
	if s.Instance {
		return d.Roster[a.Rank].Host == a.Host
	}
	return d.Roster[a.Rank].Inc == i+1
}

func (w *world) endSession(i uint8) {
	w.Agents[i].Sess = false
	for r := range w.Live {
		if w.Live[r] == i+1 {
			w.Live[r] = 0
		}
		if w.Ready[r][0] == i+1 {
			w.Ready[r] = [2]uint8{}
		}
	}
}

// die keeps what other steps ask of a dead agent: its host, its session, an orphan process.
func (a *wAgent) die() {
	*a = wAgent{St: dead, Host: a.Host, Rank: a.Rank, Sess: a.Sess, Proc: a.Proc}
}

// nextAgent is the first that was never launched, s.Agents when there is none left.
func (s setting) nextAgent(w *world) uint8 {
	for i := range s.Agents {
		if w.Agents[i].St == unborn {
			return i
		}
	}
	return s.Agents
}

func (s setting) aliveOf(w *world, r uint8) (n int) {
	for _, a := range w.Agents[:s.Agents] {
		if a.St == alive && a.Rank == r {
			n++
		}
	}
	return n
}

func lastHost(w *world, r uint8) (h uint8) {
	for _, a := range w.Agents {
		if a.St != unborn && a.Rank == r {
			h = a.Host
		}
	}
	return h
}

// bad names the first broken invariant, or "".
func (s setting) bad(w *world) string {
	cur := w.Dirs[w.Cur]
	for d := uint8(1); d <= w.Cur; d++ {
		p, q := w.Dirs[d-1], w.Dirs[d]
		if p.Act == actStop {
			return "V1: a directive after the verdict"
		}
		if q.Retries > s.Retry {
			return "B1: formed anew more often than muster.retry allows"
		}
		if q.Stale {
			return "E1: a result from before the gang was formed anew was counted"
		}
		released := q.Act == actRun && p.Act == actRun && p.Held && !q.Held
		saves := q.Act == actRun && p.Act == actRun && q.Gen == p.Gen && q.Save == p.Save+1
		if q.Early || q.Save != p.Save && !saves {
			return "V2: two saves at a time, or one that was forgotten"
		}
		if q.Gen < p.Gen || q.Gen == p.Gen && q.Act <= p.Act && !released && !saves {
			return "D1: generation or act went back or repeated"
		}
	}
	var perRank [maxRanks]int
	for i, a := range w.Agents {
		if a.Proc == 0 {
			continue
		}
		if perRank[a.Rank]++; perRank[a.Rank] > 1 && !s.NoAxiom {
			return "S1: two live processes of one rank"
		}
		if s.Order && a.Rank > 0 && a.Proc > w.Up {
			return "O1: a process starts before those that it is ordered after"
		}
		old := cur.Act == actRun && a.Proc < cur.Gen
		if old && !s.NoAxiom {
			return "S2: a process of an older generation lives after the release of a newer"
		}
		if old && w.Live[a.Rank] == uint8(i)+1 {
			return "C1: a member of an older generation can still commit a checkpoint"
		}
		for _, x := range w.Dirs[:w.Cur+1] {
			if x.Act == actRun && x.Gen == a.Proc && a.St == alive && !s.mine(x, uint8(i), a) {
				return "R1: a process runs with a roster that does not name it"
			}
		}
	}
	return ""
}

// good is the goal of liveness: everybody runs the current generation, or all have left with the verdict.
func (s setting) good(w *world) bool {
	cur := w.Dirs[w.Cur]
	if cur.Act == actStop {
		for _, a := range w.Agents {
			if a.St == alive {
				return false
			}
		}
		return true
	}
	if cur.Act != actRun {
		return false
	}
	n := uint8(0)
	for _, a := range w.Agents {
		if a.St == alive && a.Proc == cur.Gen {
			n++
		}
	}
	for r := range s.Ranks {
		if m := w.Mem[r]; s.Instance && m.Ph == phEnded && m.ExitGen >= cur.Anew {
			n++
		}
	}
	return n == s.Ranks
}

// starved tells that nothing is left to launch that the gang would need: no progress is owed.
func (s setting) starved(w *world) bool {
	if s.nextAgent(w) < s.Agents {
		return false
	}
	for r := range s.Ranks {
		if s.aliveOf(w, r) == 0 {
			return true
		}
	}
	return false
}
