package policy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/notices"
	"github.com/muster-agent/muster/shim/ownfolder"
)

// notifyRules say whom agents tell of the events of apps. Neither command nor URL can come from a definition: they run
// and send with the rights of the agent.
type notifyRules struct {
	// Command is a program and its arguments, which gets a message on its stdin.
	Command []string `json:"command"`
	// URL is where messages are posted to, in place of a command.
	URL string `json:"url"`
	// HeaderFile has lines NAME: VALUE for each request.
	HeaderFile string `json:"header_file"`
	// CAFile has the certificates that sign the server's, in place of the system's.
	CAFile string `json:"ca_file"`
	// Events are the events to tell of; none: all.
	Events []string `json:"events"`
	// Timeout limits one try.
	Timeout string `json:"timeout"`

	// Limit is Timeout, read.
	Limit time.Duration `json:"-"`
}

// The limits of notify.timeout.
const (
	notifyLimit     = 10 * time.Second
	mostNotifyLimit = time.Minute
)

// Wants tells whether the notifier is told of an event; none is without a notifier.
func (n notifyRules) Wants(event string) bool {
	return n.To() != "" && (len(n.Events) == 0 || slices.Contains(n.Events, event))
}

// To names the notifier; "": there is none. The path of a URL may be a secret, and is left out.
func (n notifyRules) To() string {
	if len(n.Command) > 0 {
		return n.Command[0]
	}
	if u, err := url.Parse(n.URL); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return ""
}

// check passes to bad what is wrong. written tells whether the policy has the section.
func (n *notifyRules) check(written bool, bad func(field, format string, args ...any)) {
	if len(n.Command) == 0 && n.URL == "" {
		if written {
			bad("notify", `got neither command nor url, want one: {"command": ["/usr/local/bin/tell"]}`)
		}
		return
	}
	if len(n.Command) > 0 && n.URL != "" {
		bad("notify.url", "got both command and url, want one of them")
		return
	}
	n.checkCommand(bad)
	n.checkURL(bad)
	for i, event := range n.Events {
		if known := notices.Events(); !slices.Contains(known, event) {
			want := appdef.OneOf(known, "")
			if hint := appdef.DidYouMean(event, known); hint != "" {
				want += "; " + hint
			}
			bad(fmt.Sprintf("notify.events[%d]", i), "no event is called %q, want %s", event, want)
		}
	}
	n.Limit = notifyLimit
	if n.Timeout == "" {
		return
	}
	d, err := time.ParseDuration(n.Timeout)
	if n.Limit = d; err != nil || d <= 0 || d > mostNotifyLimit {
		bad("notify.timeout", "got %q, want a time up to %s, such as 10s", n.Timeout, mostNotifyLimit)
	}
}

func (n *notifyRules) checkCommand(bad func(field, format string, args ...any)) {
	const field = "notify.command[0]"
	if len(n.Command) == 0 {
		return
	}
	program := n.Command[0]
	if !filepath.IsAbs(program) {
		bad(field, "got %q, want the absolute path of a program", program)
		return
	}
	err := ownfolder.Trusted(program, os.Geteuid())
	if err == nil {
		err = executable(program)
	}
	if err != nil {
		bad(field, "%w", err)
	}
	for name, given := range map[string]string{"header_file": n.HeaderFile, "ca_file": n.CAFile} {
		if given != "" {
			bad("notify."+name, "got %s beside a command, want it with a url alone", given)
		}
	}
}

// executable refuses what is no program.
func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0) {
		err = fmt.Errorf("%s is no program: chmod +x makes it one", path)
	}
	return err
}

// checkURL never shows the URL, which may hold a token.
func (n *notifyRules) checkURL(bad func(field, format string, args ...any)) {
	if n.URL == "" {
		return
	}
	if err := postable(n.URL); err != nil {
		bad("notify.url", "%w, want https://HOST/PATH, or http:// to this host itself", err)
	}
	if n.HeaderFile != "" && !filepath.IsAbs(n.HeaderFile) {
		bad("notify.header_file", "got %q, want an absolute path", n.HeaderFile)
	}
	if n.CAFile == "" {
		return
	}
	if err := ownfolder.Trusted(n.CAFile, os.Geteuid()); err != nil {
		bad("notify.ca_file", "%w", err)
	}
}

func postable(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("got what is no URL")
	case u.User != nil:
		return errors.New("got a user in the URL: put it into header_file")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("got %s", appdef.Quote(u.Scheme+"://"))
	}
	if ip := net.ParseIP(u.Hostname()); strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("got http:// to %s, which everybody on the way could read", u.Host)
}
