package consul

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// token is the ACL token of one client. One from a file is read again when the registry refuses it: an operator who
// rotates tokens writes the new one there.
type token struct {
	file string // "": it never changes

	mu     sync.Mutex
	secret string
}

// newToken takes the given token, else what Consul's variables name: the file before the value, as Consul's own tools
// do.
func newToken(given string) (*token, error) {
	config := api.DefaultNonPooledConfig()
	if given != "" || config.TokenFile == "" {
		if given == "" {
			given = config.Token
		}
		return &token{secret: given}, nil
	}
	t := &token{file: config.TokenFile}
	var err error
	t.secret, err = t.read()
	return t, err
}

func (t *token) read() (string, error) {
	b, err := os.ReadFile(t.file)
	if err != nil {
		return "", fmt.Errorf("registry token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (t *token) now() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secret
}

// another tells whether there is another token than the refused one.
func (t *token) another(refused string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.secret != refused {
		return true
	}
	if t.file == "" {
		return false
	}
	secret, err := t.read()
	if err != nil || secret == refused { // it may be written at this moment: the next refusal reads it again
		return false
	}
	t.secret = secret
	return true
}

// authorized sends requests with the client's token, and repeats one that was refused if there is another token by now.
// A refused request has changed nothing.
type authorized struct {
	next  *http.Transport
	token *token
}

// CloseIdleConnections is what http.Client's needs.
func (a *authorized) CloseIdleConnections() { a.next.CloseIdleConnections() }

func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	secret := a.token.now()
	resp, err := a.next.RoundTrip(withToken(req, secret))
	if err != nil || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	denied, err := deniedBy(resp)
	if err != nil || !denied || !a.token.another(secret) {
		return resp, err
	}
	_ = resp.Body.Close()
	again := withToken(req, a.token.now())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.next.RoundTrip(again)
}

func withToken(req *http.Request, secret string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Del(tokenHeader)
	if secret != "" {
		req.Header.Set(tokenHeader, secret)
	}
	return req
}

const (
	tokenHeader = "X-Consul-Token"
	// noRight begins Consul's word on a transaction that the token may not do. Its status is 409, as after a lost race.
	noRight = "Permission denied"
)

// deniedBy tells whether a response refuses the token. Its body can still be read.
func deniedBy(resp *http.Response) (bool, error) {
	if resp.StatusCode != http.StatusConflict {
		return resp.StatusCode == http.StatusForbidden, nil
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(noRight)), err
}

// refusesToken tells whether an error says that the registry answers, but not with this token.
func refusesToken(err error) bool { return errors.Is(err, registry.ErrForbidden) }
