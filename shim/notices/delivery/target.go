package delivery

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/tail"
)

// Target is where messages go: Command or URL.
type Target struct {
	Command    []string
	URL        string
	HeaderFile string // lines `Name: value` for each request; "": none
	CAFile     string // certificates that sign the server's; "": the system's
	Limit      time.Duration
}

// refusal is an answer that another try would get again.
type refusal struct{ error }

// try sends one message once.
func (t Target) try(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	if len(t.Command) > 0 {
		return t.run(ctx, body)
	}
	return t.post(ctx, body)
}

// mostSaid is how much of a command's complaint a warning has, in bytes.
const mostSaid = 300

// run gives a message to the command. It gets nothing of the agent's environment, which holds secrets, and is killed
// with its whole process group.
func (t Target) run(ctx context.Context, body []byte) error {
	cmd := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, "/"
	cmd.Stdin = bytes.NewReader(body)
	said := &tail.Buffer{}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil: // a child of it holds its stderr
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s has not ended within %s and was killed", t.Command[0], t.Limit)
	}
	return fmt.Errorf("%s: %w%s", t.Command[0], err, complaint(said.String()))
}

// complaint is the end of what a command said, behind an error.
func complaint(said string) string {
	said = strings.Join(strings.Fields(said), " ")
	if said == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(said[max(0, len(said)-mostSaid):], "")
}

// post sends a message to the URL. Redirects are not followed: they could lead past TLS, or to another receiver.
func (t Target) post(ctx context.Context, body []byte) error {
	to, err := url.Parse(t.URL)
	if err != nil {
		return errors.New("the URL cannot be read") // the error would show it
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL cannot be read")
	}
	if err := t.headers(request.Header); err != nil {
		return err
	}
	answer, err := client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if err != nil {
		return fmt.Errorf("post to %s: %w", to.Host, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // nobody reads it
	code := answer.StatusCode
	switch {
	case code/100 == 2:
		return nil
	case code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests:
		return &refusal{fmt.Errorf("post to %s: got %s, want 2xx", to.Host, answer.Status)}
	}
	return fmt.Errorf("post to %s: got %s, want 2xx", to.Host, answer.Status)
}

func (t Target) client() (*http.Client, error) {
	verify := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("notify.ca_file: %w", err)
		}
		verify.RootCAs = x509.NewCertPool()
		if !verify.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("notify.ca_file %s has no certificate in PEM", t.CAFile)
		}
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: verify},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// headers reads the header file anew for each request: a token in it may be replaced while jobs run.
func (t Target) headers(to http.Header) error {
	to.Set("Content-Type", "application/json")
	if t.HeaderFile == "" {
		return nil
	}
	if err := ownfolder.Trusted(t.HeaderFile, os.Geteuid()); err != nil {
		return fmt.Errorf("notify.header_file: %w", err)
	}
	text, err := os.ReadFile(t.HeaderFile)
	if err != nil {
		return fmt.Errorf("notify.header_file: %w", err)
	}
	for lines, n := bufio.NewScanner(bytes.NewReader(text)), 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		name, value, ok := strings.Cut(line, ":")
		if ok && name != "" && !strings.ContainsAny(name, " \t") {
			to.Set(name, strings.TrimSpace(value))
		} else if line != "" {
			return fmt.Errorf("notify.header_file %s:%d: want NAME: VALUE", t.HeaderFile, n)
		}
	}
	return nil
}
