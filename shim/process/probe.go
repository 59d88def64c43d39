package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/muster-agent/muster/shim/side"
)

// probe asks a side process that serves HTTP whether it still does.
type probe struct {
	urls         []string      // where it may answer
	every        time.Duration // between two questions
	unresponsive func(answered bool, since time.Duration) bool
}

func probeOf(host string, port int) probe {
	p := probe{every: side.ProbeEvery, unresponsive: side.Unresponsive}
	for _, at := range []string{host, "127.0.0.1"} { // it may bind the one or the other, and host may be translated
		if at != "" {
			p.urls = append(p.urls, "http://"+net.JoinHostPort(at, strconv.Itoa(port))+"/")
		}
	}
	return p
}

// watch asks until ctx is done. first is called at the first answer; an error says that there was none for too long.
func (p probe) watch(ctx context.Context, first func()) error {
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}, Timeout: p.every,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answered, last, pause := false, time.Now(), min(p.every, time.Second)
	for {
		err := p.ask(ctx, &client)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && !answered:
			first()
			fallthrough
		case err == nil:
			answered, last, pause = true, time.Now(), p.every
		case p.unresponsive(answered, time.Since(last)):
			return fmt.Errorf("does not answer HTTP: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// ask takes any answer for one, errors of the page too.
func (p probe) ask(ctx context.Context, client *http.Client) error {
	var all error
	for _, url := range p.urls {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err == nil {
			var answer *http.Response
			if answer, err = client.Do(r); err == nil {
				return answer.Body.Close()
			}
		}
		all = errors.Join(all, err)
	}
	return all
}
