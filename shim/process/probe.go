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

// ear asks a side process that serves HTTP whether it still does.
type ear struct {
	urls  []string      // where it may answer
	every time.Duration // between two questions
	deaf  func(answered bool, silent time.Duration) bool
}

func earOf(host string, port int) ear {
	e := ear{every: side.HearEvery, deaf: side.Deaf}
	for _, at := range []string{host, "127.0.0.1"} { // it may bind the one or the other, and host may be translated
		if at != "" {
			e.urls = append(e.urls, "http://"+net.JoinHostPort(at, strconv.Itoa(port))+"/")
		}
	}
	return e
}

// hear asks until ctx is done. heard is told of the first answer; an error says that there was none for too long.
func (e ear) hear(ctx context.Context, heard func()) error {
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}, Timeout: e.every,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answered, last, pause := false, time.Now(), min(e.every, time.Second)
	for {
		err := e.ask(ctx, &client)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && !answered:
			heard()
			fallthrough
		case err == nil:
			answered, last, pause = true, time.Now(), e.every
		case e.deaf(answered, time.Since(last)):
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
func (e ear) ask(ctx context.Context, client *http.Client) error {
	var all error
	for _, url := range e.urls {
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
