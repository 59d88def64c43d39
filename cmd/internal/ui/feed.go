package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/exit"
)

// feedPoll is how often a feed looks.
const feedPoll = time.Second

// feeds are what browsers follow, by app; "" is the list of all.
type feeds struct {
	look func(ctx context.Context, app string) (any, error)

	mu  sync.Mutex
	all map[string]*feed
}

// feed looks while it has followers, and hands each change to all of them.
type feed struct {
	stop      context.CancelFunc
	last      []byte
	followers map[chan []byte]bool
}

// follow gives what is there and each change until the returned function is called. A follower that is slow gets the
// newest alone.
func (f *feeds) follow(ctx context.Context, app string) (news <-chan []byte, leave func()) {
	mine := make(chan []byte, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[app]
	if one == nil {
		one = &feed{followers: map[chan []byte]bool{}}
		if f.all == nil {
			f.all = map[string]*feed{}
		}
		f.all[app] = one
		var looking context.Context
		looking, one.stop = context.WithCancel(context.WithoutCancel(ctx))
		go f.run(looking, app, one)
	}
	one.followers[mine] = true
	if one.last != nil {
		mine <- one.last
	}
	return mine, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(one.followers, mine)
		if len(one.followers) == 0 && f.all[app] == one {
			one.stop()
			delete(f.all, app)
		}
	}
}

func (f *feeds) run(ctx context.Context, app string, one *feed) {
	tick := time.NewTicker(feedPoll)
	defer tick.Stop()
	for {
		value, err := f.look(ctx, app)
		if err != nil {
			value = map[string]string{"error": err.Error()}
		}
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(`{"error": ` + strconv.Quote(err.Error()) + `}`)
		}
		if ctx.Err() == nil {
			f.tell(one, text)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *feeds) tell(one *feed, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.Equal(text, one.last) {
		return
	}
	one.last = text
	for follower := range one.followers {
		select {
		case <-follower: // what it has not taken is old
		default:
		}
		follower <- text
	}
}

// live sends what a feed tells as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := flusher{w}
	defer out.done()
	out.flush()
	news, leave := s.feeds.follow(r.Context(), r.PathValue("app"))
	defer leave()
	idle := time.NewTicker(patience)
	defer idle.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case text := <-news:
			_, err = fmt.Fprintf(out, "data: %s\n\n", text)
		case <-idle.C: // a browser that is gone is noticed
			_, err = fmt.Fprint(out, ": \n\n")
		}
		if err != nil {
			return
		}
	}
}

// tailOf reads how many lines of a log are wanted.
func tailOf(text string) (int, error) {
	const usual, most = 200, 100_000
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, exit.Usagef("tail %q: want a number of lines, at most %d", text, most)
	}
	return n, nil
}
