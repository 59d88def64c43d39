package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/exit"
)

// Client talks to one agent: over its socket, or from another host.
type Client struct {
	http  *http.Client
	base  string // of each URL
	path  string // or host:port
	token string // of the run; "": none is needed
	grant string // to act on another host, once
	end   func() // of what Close ends beside; nil: nothing
}

func (c *Client) identify(r *http.Request) {
	if c.token != "" {
		r.Header.Set("Authorization", bearer+c.token)
	}
	if c.grant != "" {
		r.Header.Set(grantHeader, c.grant)
	}
}

// Dial makes a client; it connects at the first call.
func Dial(path string) *Client {
	return dialUnix(path, func(net.Conn) error { return nil })
}

func dialUnix(path string, check func(net.Conn) error) *Client {
	return &Client{base: "http://agent", path: path, http: clientOf(&http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "unix", path)
			if err != nil {
				return nil, err
			}
			if err := check(conn); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
	})}
}

func clientOf(t *http.Transport) *http.Client {
	return &http.Client{CheckRedirect: noRedirect, Transport: t}
}

// noRedirect has an answer that leads elsewhere be an answer: no agent asks an address that a peer names in a redirect.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// errStranger refuses a socket at which another user's process answers.
var errStranger = errors.New("another user's process answers there: nothing was sent to it")

// DialRecorded makes a client of an instance's agent at the socket that a record names. It answers an error for a path
// that no agent of that instance would choose, and sends nothing to the process of another user.
func DialRecorded(path, app, instance string) (*Client, error) {
	if !socketOf(path, app, instance) {
		return nil, fmt.Errorf("%s is not the socket of an agent of %s/%s", path, app, instance)
	}
	return dialUnix(path, ownPeer), nil
}

// ownPeer is an error unless the process at the other end is of the caller's user.
func ownPeer(conn net.Conn) error {
	uid, err := peerUID(conn)
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("uid %d: %w", uid, errStranger)
	}
	return err
}

// peerUID is the user of the process at the other end of a socket.
func peerUID(conn net.Conn) (int, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errStranger
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var is *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) { is, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, asked); err != nil {
		return 0, err
	}
	return int(is.Uid), nil
}

// Close ends idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.end != nil {
		c.end()
	}
}

// Acting is a client that shows a grant, for which the agent acts once; Close calls end.
func (c *Client) Acting(grant string, end func()) *Client {
	acting := *c
	acting.grant, acting.end = grant, end
	return &acting
}

// State asks what the agent is doing.
func (c *Client) State(ctx context.Context) (State, error) {
	var s State
	err := c.ask(ctx, http.MethodGet, "/v1/state", nil, &s, mostState)
	return s, err
}

// Silence asks for how long the registry has not answered the agent.
func (c *Client) Silence(ctx context.Context) (Silence, error) {
	var s Silence
	err := c.call(ctx, http.MethodGet, "/v1/peer/silence", nil, &s)
	return s, err
}

// View reads the app as Slider's REST shows it.
func (c *Client) View(ctx context.Context, into any) error {
	return c.call(ctx, http.MethodGet, "/v1/view", nil, into)
}

// Signal sends a signal to the app's main process.
func (c *Client) Signal(ctx context.Context, signal string) error {
	return c.call(ctx, http.MethodPost, "/v1/signal", map[string]string{"signal": signal}, nil)
}

// Stop asks the agent to stop its process and leave.
func (c *Client) Stop(ctx context.Context, grace *float64) error {
	return c.call(ctx, http.MethodPost, "/v1/stop", map[string]*float64{"grace": grace}, nil)
}

// Logs copies a log (stdout, stderr, agent) from offset on.
func (c *Client) Logs(ctx context.Context, name string, offset int64, follow bool, to io.Writer) error {
	query := url.Values{"offset": {strconv.FormatInt(offset, 10)}, "follow": {strconv.FormatBool(follow)}}
	r, err := c.send(ctx, http.MethodGet, "/v1/logs/"+url.PathEscape(name)+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r.Body)
	return errors.Join(err, r.Body.Close())
}

// Tail copies the last lines of a log (stdout, stderr, agent), over all its rotated files; -1: all lines. With follow
// it goes on until ctx is done or the agent ends.
func (c *Client) Tail(ctx context.Context, name string, lines int, follow bool, to io.Writer) error {
	query := url.Values{"tail": {strconv.Itoa(lines)}, "follow": {strconv.FormatBool(follow)}}
	r, err := c.send(ctx, http.MethodGet, "/v1/logs/"+url.PathEscape(name)+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r.Body)
	if follow { // an agent that ends breaks the connection off
		err = nil
	}
	return errors.Join(err, r.Body.Close())
}

// Hold keeps the container of a failed process for so long from now on; 0 releases it.
func (c *Client) Hold(ctx context.Context, keep time.Duration) error {
	return c.call(ctx, http.MethodPost, "/v1/hold", map[string]float64{"for": keep.Seconds()}, nil)
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	return c.ask(ctx, method, path, body, into, mostAnswer)
}

// ask reads so many bytes of the answer at most.
func (c *Client) ask(ctx context.Context, method, path string, body, into any, most int64) error {
	r, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }() // read to the end
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, most)).Decode(into); err != nil {
		return fmt.Errorf("agent at %s: %w", c.path, err)
	}
	return nil
}

// How long an answer may be, in bytes; logs are none. An agent is anybody who can write its record. States are asked of
// all agents of an app at once, each second; what an agent says in one it writes into its record, too, and Consul takes
// no longer value.
const (
	mostAnswer = 16 << 20
	mostState  = 512 << 10
)

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, &text)
	if err != nil {
		return nil, err
	}
	c.identify(req)
	r, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("agent at %s: %w", c.path, err)
	}
	if r.StatusCode == http.StatusOK {
		return r, nil
	}
	return nil, c.failure(r)
}

// failure is the error that an answer carries.
func (c *Client) failure(r *http.Response) error {
	var f failure
	err := json.NewDecoder(io.LimitReader(r.Body, mostBody)).Decode(&f)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return fmt.Errorf("agent at %s: %s: %w", c.path, r.Status, err)
	}
	if f.Hint != "" {
		f.Error += "; " + f.Hint
	}
	if f.Code > 0 && f.Code < 256 {
		return exit.With(f.Code, errors.New(f.Error))
	}
	return errors.New(f.Error)
}
