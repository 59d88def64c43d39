package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/notices"
	"github.com/muster-agent/muster/shim/wait"
)

// The bounds of what is sent.
const (
	mostQueued = 64
	tries      = 5
	firstPause = time.Second // between two tries; it doubles
	patience   = time.Minute // for all tries of a message
	// farewell is how long the end of an agent waits for its last messages.
	farewell = 5 * time.Second
)

// warning is the kind of the warning that a message was not delivered.
const warning = "notifier"

// Config is a Sender's.
type Config struct {
	Log    *slog.Logger
	Warn   func(kind, text string)
	Mended func(kind, text string)
	Target Target
}

// Sender sends messages. Its methods may be called from any goroutine, also if it is nil: then nobody is told.
type Sender struct {
	cfg    Config
	queue  chan notices.Message
	stop   context.CancelFunc
	done   chan struct{}
	closed sync.Once
}

// New starts a sender, which lives until Close.
func New(ctx context.Context, cfg Config) *Sender {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sender{cfg: cfg, queue: make(chan notices.Message, mostQueued), stop: stop, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

// Send queues a message; call it before Close only.
func (s *Sender) Send(m notices.Message) {
	if s == nil {
		return
	}
	select {
	case s.queue <- m:
	default:
		s.lost(m, fmt.Errorf("%d messages wait already", mostQueued))
	}
}

// Close waits a few seconds for the messages that are queued.
func (s *Sender) Close() {
	if s == nil {
		return
	}
	s.closed.Do(func() { close(s.queue) })
	select {
	case <-s.done:
	case <-time.After(farewell):
	}
	s.stop()
	<-s.done
}

func (s *Sender) run(ctx context.Context) {
	defer close(s.done)
	for m := range s.queue {
		body, err := json.Marshal(m)
		if err == nil {
			err = s.persist(ctx, append(body, '\n'))
		}
		if err != nil {
			s.lost(m, err)
			continue
		}
		s.cfg.Log.Debug("notifier told", "id", m.ID)
		s.cfg.Mended(warning, "the notifier takes messages")
	}
}

// persist tries until the target has taken a message, or will not.
func (s *Sender) persist(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n, pause := 1, firstPause; ; n, pause = n+1, pause*2 {
		err := s.cfg.Target.try(ctx, body)
		if err == nil {
			return nil
		}
		_, final := errors.AsType[*refusal](err)
		if final || n == tries || wait.For(ctx, pause) != nil {
			return fmt.Errorf("%w (%d of %d tries)", err, n, tries)
		}
	}
}

// lost warns that nobody was told.
func (s *Sender) lost(m notices.Message, err error) {
	text := fmt.Sprintf("the notifier was not told of %s: %v", m.ID, err)
	s.cfg.Log.Warn("notifier not told", "id", m.ID, "err", err)
	s.cfg.Warn(warning, text)
}
