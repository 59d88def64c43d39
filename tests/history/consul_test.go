package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// A read waits so long for a change, and is given up after a little more.
const (
	readWait  = 10 * time.Second
	readLimit = 15 * time.Second
)

// reader reads the keys of apps from whichever server answers, and writes down what they say.
type reader struct {
	servers []*consulserver.Server
	out     *recorder

	mu       sync.Mutex
	verdicts map[string]string // outcome by app and run, as last read
	notes    []string          // what could not be read
}

// pair is a key as Consul's API has it.
type pair struct {
	Key   string
	Value []byte
}

// watch reads an app until the context ends: once, and again after each change.
func (r *reader) watch(ctx context.Context, app string) {
	var last state
	index, at := uint64(0), 0
	for ctx.Err() == nil {
		asked := boottime()
		pairs, next, err := r.read(ctx, r.servers[at%len(r.servers)], app, index)
		if err != nil {
			at++ // that one is away, or knows no leader
			index = 0
			pause(ctx, 100*time.Millisecond)
			continue
		}
		index = next
		if err := r.note(app, asked, pairs, &last); err != nil {
			r.mu.Lock()
			r.notes = append(r.notes, err.Error())
			r.mu.Unlock()
		}
	}
}

// read is one blocking read of all keys of an app, confirmed by a majority.
func (r *reader) read(ctx context.Context, s *consulserver.Server, app string, index uint64) ([]pair, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	url := fmt.Sprintf("http://%s/v1/kv/muster/%s/?recurse&consistent&index=%d&wait=%s", s.HTTPAddr, app, index, readWait)
	resp, err := request(ctx, s, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	next, _ := strconv.ParseUint(resp.Header.Get("X-Consul-Index"), 10, 64)
	if next < index {
		next = 0
	}
	var pairs []pair
	switch resp.StatusCode {
	case http.StatusNotFound: // nothing of the app is there
		return nil, next, nil
	case http.StatusOK:
		return pairs, next, json.NewDecoder(resp.Body).Decode(&pairs)
	}
	return nil, 0, fmt.Errorf("read %s: %s", app, resp.Status)
}

// state is what a reader has written down last of an app.
type state struct {
	verdicts map[string]string
	reported map[string]bool
	released map[string]bool
	founded  map[string]time.Time
}

// note writes down what is new in the keys of an app.
func (r *reader) note(app string, asked int64, pairs []pair, last *state) error {
	if last.verdicts == nil {
		*last = state{map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]time.Time{}}
	}
	var (
		now     = boottime()
		d       registry.Directive
		members = map[registry.Instance]registry.Member{}
		chunks  = map[string][][]byte{}
	)
	for _, p := range pairs {
		name := strings.TrimPrefix(p.Key, "muster/"+app+"/")
		group, rest, _ := strings.Cut(name, "/")
		var err error
		switch group {
		case "app":
			err = r.noteFounding(app, p.Value, last)
		case "directive":
			err = json.Unmarshal(p.Value, &d)
		case "roster": // in the order of names; a roster of a test has one chunk
			id, _, _ := strings.Cut(rest, "/")
			chunks[id] = append(chunks[id], p.Value)
		case "members":
			component, index, _ := strings.Cut(rest, "/")
			i, _ := strconv.Atoi(index)
			var m registry.Member
			err = json.Unmarshal(p.Value, &m)
			members[registry.Instance{Component: component, Index: i}] = m
		case "verdict":
			err = r.noteVerdict(event{At: now, Asked: asked, App: app, Run: rest, Kind: verdict, Text: string(p.Value)}, last)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Key, err)
		}
	}
	if d.Run == "" {
		return nil
	}
	e := event{At: now, Asked: asked, Kind: directive, App: app, Run: d.Run, Gen: d.Gen, Act: string(d.Act)}
	e.Sealed, _ = strconv.Atoi(strings.Split(d.Roster.ID, "-")[0])
	if err := r.out.write(e); err != nil { // each read is evidence: it says what was so after it began
		return err
	}
	if err := r.noteReports(app, asked, d, members, last); err != nil {
		return err
	}
	return r.noteRelease(app, d, chunks[d.Roster.ID], members, last)
}

// noteFounding writes down that a run was founded a second time: its agents were gone, or were taken for gone.
func (r *reader) noteFounding(app string, text []byte, last *state) error {
	var a registry.AppRecord
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if was := last.founded[a.Run]; !was.IsZero() && !was.Equal(a.Created) {
		if err := r.out.write(event{Kind: notice, App: app, Run: a.Run, Why: "run founded anew"}); err != nil {
			return err
		}
	}
	last.founded[a.Run] = a.Created
	return nil
}

func (r *reader) noteVerdict(e event, last *state) error {
	if last.verdicts[e.Run] == e.Text {
		return nil
	}
	var v registry.Verdict
	if err := json.Unmarshal([]byte(e.Text), &v); err != nil {
		return err
	}
	last.verdicts[e.Run] = e.Text
	e.Gen, e.Outcome = v.Gen, string(v.Outcome)
	r.mu.Lock()
	r.verdicts[e.App+" "+e.Run] = e.Outcome
	r.mu.Unlock()
	return r.out.write(e)
}

// noteReports writes down each result of 0 of the current run once.
func (r *reader) noteReports(
	app string, asked int64, d registry.Directive, members map[registry.Instance]registry.Member, last *state,
) error {
	for in, m := range members {
		if m.Phase != registry.PhaseEnded || m.Run != d.Run || m.Exit == nil {
			continue
		}
		id := fmt.Sprint(m.Run, in, m.Exit.Gen)
		if last.reported[id] {
			continue
		}
		last.reported[id] = true
		e := event{Asked: asked, Kind: reported, App: app, Run: m.Run, Instance: in.String(), Gen: m.Exit.Gen}
		if err := r.out.write(e); err != nil {
			return err
		}
	}
	return nil
}

// noteRelease writes down the first sight of a generation that runs, with those of its roster who had not acknowledged.
func (r *reader) noteRelease(
	app string, d registry.Directive, chunks [][]byte, members map[registry.Instance]registry.Member, last *state,
) error {
	id := fmt.Sprint(d.Run, d.Gen)
	if d.Act != registry.ActRun || last.released[id] || len(chunks) == 0 {
		return nil
	}
	last.released[id] = true
	roster, _, err := registry.Unpack(d.Roster, bytes.Join(chunks, nil))
	if err != nil {
		return err
	}
	return r.out.write(event{Kind: released, App: app, Run: d.Run, Gen: d.Gen, Missing: unacknowledged(roster, members)})
}

// outcome is the outcome of a run's verdict; empty as long as none was read.
func (r *reader) outcome(app, run string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdicts[app+" "+run]
}

// finished are the runs of an app with a verdict.
func (r *reader) finished(app string) (runs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.verdicts {
		if run, ok := strings.CutPrefix(key, app+" "); ok {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs
}

// request asks a server from its own host.
func request(ctx context.Context, s *consulserver.Server, method, url string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	return s.HTTP().Do(req)
}

// command asks a server for something and returns its answer's body.
func command(ctx context.Context, s *consulserver.Server, method, path string, body io.Reader) ([]byte, error) {
	resp, err := request(ctx, s, method, "http://"+s.HTTPAddr+path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return text, err
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
