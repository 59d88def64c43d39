package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
)

// feedPoll is how often a feed looks; where looking takes long, it rests for restFactor times as long.
const (
	feedPoll   = time.Second
	restFactor = 4
)

// feeds are what browsers follow, by app; "" is the list of all.
type feeds struct {
	look func(ctx context.Context, app string) (any, error)

	mu  sync.Mutex
	all map[string]*feed
	// over is closed when each follower has the last news that it will get; nil: there is no such moment.
	over chan struct{}
}

// feed looks while it has followers, and hands each change to all of them.
type feed struct {
	stop      context.CancelFunc
	last      *news
	followers map[chan *news]bool
}

// news is what a feed has seen: as a text, and of the list of all apps each row alone.
type news struct {
	text []byte
	rows map[string]string // JSON, by app; nil: not the list
	// warnings of the list
	warnings []string
}

// follow gives what is there and each change until the returned function is called. A follower that is slow gets the
// newest alone.
func (f *feeds) follow(ctx context.Context, app string) (changes <-chan *news, leave func()) {
	mine := make(chan *news, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[app]
	if one == nil {
		one = &feed{followers: map[chan *news]bool{}}
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
	for ctx.Err() == nil {
		begun := time.Now()
		value, err := f.see(ctx, app)
		f.tell(ctx, one, value, err)
		rest := time.NewTimer(max(feedPoll, restFactor*time.Since(begun)))
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
	}
}

func (f *feeds) see(ctx context.Context, app string) (any, error) {
	return survive(ctx, app, func(ctx context.Context) (any, error) { return f.look(ctx, app) })
}

func newsOf(value any) *news {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(`{"error": ` + strconv.Quote(err.Error()) + `}`)
	}
	n := &news{text: text}
	if all, ok := value.(apps.Listing); ok {
		n.rows, n.warnings = map[string]string{}, all.Warnings
		for _, row := range all.Apps {
			text, _ := json.Marshal(row) // as above, where it was possible
			n.rows[row.App] = string(text)
		}
	}
	return n
}

// followed tells that somebody follows one of them.
func (f *feeds) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// conclude looks once more for all who follow, tells them, and lets them go.
func (f *feeds) conclude(ctx context.Context) {
	f.mu.Lock()
	all := maps.Clone(f.all)
	for _, one := range all {
		one.stop()
	}
	f.mu.Unlock()
	var looks sync.WaitGroup
	for app, one := range all {
		looks.Go(func() {
			value, err := f.see(ctx, app)
			f.tell(ctx, one, value, err)
		})
	}
	looks.Wait()
	close(f.over)
}

// tell is what a look has seen; one that was given up has seen nothing.
func (f *feeds) tell(ctx context.Context, one *feed, value any, err error) {
	if err != nil {
		value = map[string]string{"error": err.Error()}
	}
	n := newsOf(value)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if one.last != nil && bytes.Equal(n.text, one.last.text) {
		return
	}
	one.last = n
	for follower := range one.followers {
		select {
		case <-follower: // what it has not taken is old
		default:
		}
		follower <- n
	}
}

// since is what is told of n to who was told of before: of the list only the rows that have changed, and the apps that
// are gone.
func (n *news) since(before *news) []byte {
	if n.rows == nil || before == nil || before.rows == nil {
		return n.text
	}
	changed, gone := []json.RawMessage{}, []string{}
	for app, row := range n.rows {
		if before.rows[app] != row {
			changed = append(changed, json.RawMessage(row))
		}
	}
	for app := range before.rows {
		if _, there := n.rows[app]; !there {
			gone = append(gone, app)
		}
	}
	text, err := json.Marshal(map[string]any{
		"version": 1, "changed": changed, "gone": gone, "warnings": n.warnings,
	})
	if err != nil || len(text) > len(n.text) {
		return n.text
	}
	return text
}

// live sends what a feed tells as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := flusher{w}
	out.flush()
	changes, leave := s.feeds.follow(r.Context(), r.PathValue("app"))
	defer leave()
	idle := time.NewTicker(patience)
	defer idle.Stop()
	var told *news
	send := func(n *news) error {
		_, err := fmt.Fprintf(out, "data: %s\n\n", n.since(told))
		told = n
		return err
	}
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case n := <-changes:
			err = send(n)
		case <-s.feeds.over:
			select {
			case n := <-changes:
				err = send(n)
			default:
			}
			if err == nil {
				_, _ = fmt.Fprintf(out, "event: end\ndata: %s\n\n", s.Ended) // fails when the browser is gone
			}
			<-r.Context().Done() // what a page asks for at the sight of the end is answered meanwhile
			return
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
