package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options of a server. The zero value is a server without a listener that logs nothing.
type Options struct {
	// Listener is where Serve accepts connections: a unix socket or loopback TCP, nothing else.
	// Serve closes it. Handler needs none.
	Listener net.Listener
	// Logger logs sessions that expired, and each request at debug level.
	Logger *slog.Logger
}

// nodeName is the name of the one node, in sessions and in /v1/agent/self.
const nodeName = "muster-embedded"

// Server is a registry with its clock. It is safe for concurrent use. Close it.
type Server struct {
	log    *slog.Logger
	leader string // the address told by /v1/status/leader

	mu       sync.Mutex
	store    *keyStore
	watchers watchers
	wakeAt   time.Time     // when the sweeper will look; zero: not before it is kicked
	kick     chan struct{} // there is a deadline earlier than wakeAt

	closed    chan struct{}
	closeOnce sync.Once
	sweeper   sync.WaitGroup
}

// New makes an empty registry. One goroutine ends its sessions until Close.
func New(o Options) *Server {
	s := &Server{
		log:      o.Logger,
		leader:   "embedded",
		store:    newKeyStore(nodeName),
		watchers: newWatchers(),
		kick:     make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Listener != nil {
		s.leader = o.Listener.Addr().String()
	}
	s.sweeper.Go(s.sweep)
	return s
}

// Close answers all waiting readers with the current state, and ends no more sessions.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closed) })
	s.sweeper.Wait()
}

// write changes the store and wakes the readers that wait for the change.
func (s *Server) write(change func(*keyStore, time.Time) changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers.ring(change(s.store, time.Now()))
}

// look reads the store. It may hand out only values, or objects that never change.
func (s *Server) look(read func(*keyStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read(s.store)
}

// query reads. If the index of the result is not above the reader's, it waits for a change of the target and reads
// again, until the wait is over. found is false if the target does not exist yet: then only its appearance or, the
// first time, a newer index ends the wait, as in Consul.
func (s *Server) query(
	ctx context.Context, w waiting, on target, read func(*keyStore) (index uint64, found bool),
) uint64 {
	var timeout <-chan time.Time
	least, missing := w.index, false
	for {
		s.mu.Lock()
		index, found := read(s.store)
		if !found {
			if missing {
				least = index
			}
			missing = true
		}
		if w.index == 0 || index > least {
			s.mu.Unlock()
			return index
		}
		b := s.watchers.wait(on)
		s.mu.Unlock()

		if timeout == nil {
			timer := time.NewTimer(w.length())
			defer timer.Stop()
			timeout = timer.C
		}
		over := s.listen(ctx, b, timeout)
		s.mu.Lock()
		s.watchers.leave(on, b)
		s.mu.Unlock()
		if over {
			return index
		}
	}
}

// listen waits for the bell; true when the wait ended without it.
func (s *Server) listen(ctx context.Context, b *bell, timeout <-chan time.Time) bool {
	select {
	case <-b.rung:
		return false
	case <-timeout:
	case <-ctx.Done():
	case <-s.closed:
	}
	return true
}

// sweep ends sessions at their deadlines. A renewal only moves a deadline away, so the sweeper then wakes for nothing
// and looks again; a session with an earlier deadline kicks it.
func (s *Server) sweep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.closed:
			return
		}
		if next, ok := s.expire(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

func (s *Server) expire() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, touched := s.store.expire(time.Now())
	s.watchers.ring(touched)
	for _, e := range ended {
		s.log.Info("session ended: not renewed within twice its ttl", "session", e.ID, "name", e.Name, "ttl", e.TTL)
	}
	next, ok := s.store.next()
	s.wakeAt = next
	return next, ok
}

// createSession gives the session its id and makes sure that the sweeper wakes for it.
func (s *Server) createSession(want sessionInfo) (id string, err error) {
	want.ID = newUUID()
	s.write(func(st *keyStore, now time.Time) (touched changes) {
		touched, err = st.createSession(now, want)
		if err == nil {
			s.watchDeadline(st.sessions[want.ID])
		}
		return touched
	})
	return want.ID, err
}

func (s *Server) watchDeadline(l *lease) {
	if l.ttl == 0 || (!s.wakeAt.IsZero() && !l.deadline.Before(s.wakeAt)) {
		return
	}
	s.wakeAt = l.deadline
	select {
	case s.kick <- struct{}{}:
	default: // it has been kicked and has not looked yet
	}
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Handler answers the HTTP API. Readers that wait end with their request's context or with Close.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.pattern, s.answer(r))
	}
	return printable(mux)
}
