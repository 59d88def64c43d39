package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/ui"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

type uiFlags struct {
	ask       flags.Ask
	listen    string
	url       string
	appsURL   string
	cert, key string
	tokens    string
	header    string
	proxies   []string
	actors    []string
}

func newUI(s console.Streams) *cobra.Command {
	f := uiFlags{}
	cmd := &cobra.Command{
		Use: "ui", Short: "Show the apps of this host and of a registry in a browser", Args: exactly(),
		Long: `Serves a page with all apps of this host and, with --registry, of a registry: each with its instances,
their logs and events, as they change; from it a run is stopped, saved, flexed and signalled. Prints a
link that opens it once, and the next link when one was used. Ctrl-C ends it.

At an address that others reach it is the page of a cluster: it shows the apps of --registry alone,
over TLS, to who shows a token of --tokens (muster ui token makes one) or is named by a proxy in
--user-header. A token and a user have the right to look; acting is a right of its own.

Pages of apps, such as boards, are shown at *.localhost, and at --apps-url for a cluster: each has a
name of its own, so that its scripts act with nobody's rights here.`,
		Example: "  muster ui\n  muster ui --registry consul://127.0.0.1:8500 --listen 127.0.0.1:8080\n" +
			"  muster ui --registry consul://consul.example.org:8501 " +
			"\\\n    --listen :8443 --url https://muster.example.org:8443 " +
			"\\\n    --tls-cert ui.pem --tls-key ui.key --tokens ui.tokens",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), s) },
	}
	set := cmd.Flags()
	f.ask.Register(set)
	f.ask.History.Register(set)
	set.Lookup("registry").Usage = "registry whose apps are shown, beside those of this host"
	set.Lookup("history").Usage = "show the ended runs of the history store at this `URL`, too " +
		"(default: the policy's, for apps that are found nowhere else)"
	set.StringVar(&f.listen, "listen", "127.0.0.1:0",
		"`ADDRESS` to listen at, or unix:PATH for a proxy on this host; port 0: any that is free")
	set.StringVar(&f.url, "url", "", "where browsers reach it, such as https://muster.example.org")
	set.StringVar(&f.appsURL, "apps-url", "",
		"where browsers reach pages of apps, such as https://*.apps.example.org: a name for each, in place of *")
	set.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate, PEM; read again when it has changed")
	set.StringVar(&f.key, "tls-key", "", "`FILE` with its key, PEM")
	set.StringVar(&f.tokens, "tokens", "", "`FILE` with who may look and act, as muster ui token prints its lines")
	set.StringVar(&f.header, "user-header", "", "header in which a proxy names its user, such as X-Forwarded-User")
	set.StringSliceVar(&f.proxies, "proxy", nil, "address of that proxy, or ADDRESS/BITS; repeatable")
	set.StringSliceVar(&f.actors, "actor", nil, "user of that proxy who may act; * is all of them; repeatable")
	cmd.AddCommand(newUIToken(s))
	return cmd
}

func newUIToken(s console.Streams) *cobra.Command {
	act := false
	cmd := &cobra.Command{
		Use: "token NAME", Short: "Make a token for muster ui --tokens", Args: exactly("NAME"),
		Long: `Prints a new token's line for the file of muster ui --tokens, and on stderr the token itself, which
is written down nowhere else. The token opens the page's login, and programs show it in the header
"Authorization: Bearer TOKEN".`,
		Example: "  muster ui token ann >>ui.tokens\n  muster ui token --act bob >>ui.tokens",
		RunE: func(_ *cobra.Command, args []string) error {
			secret, line, err := ui.NewToken(args[0], act)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			fmt.Fprintln(s.Err, secret)
			_, err = fmt.Fprintln(s.Out, line)
			return err
		},
	}
	cmd.Flags().BoolVar(&act, "act", false, "with the right to act on apps, too")
	return cmd
}

func (f *uiFlags) serve(ctx context.Context, s console.Streams) error {
	shared, err := f.shared()
	if err != nil {
		return err
	}
	k, err := f.ask.Lookup("", s.Err)
	if err != nil {
		return err
	}
	var over apps.Over
	server := ui.Server{
		Lookup: func(app string) (apps.Lookup, error) { return f.lookup(app, s, shared, &over) },
		URL:    f.url, AppsURL: strings.TrimSuffix(f.appsURL, "/"), Log: slog.New(slog.NewTextHandler(s.Err, nil)),
		Access: ui.Access{Tokens: ui.TokenFile{Path: f.tokens}, Header: f.header, Actors: f.actors},
	}
	if server.Access.Proxies, err = prefixes(f.proxies); err != nil {
		return err
	}
	if err := server.Access.Check(); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("ui: --tokens: %w", err))
	}
	if !shared {
		server.Link = func(url string) { fmt.Fprintln(s.Out, url) }
	}
	l, err := f.open()
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("ui: %w", err))
	}
	if shared {
		fmt.Fprintln(s.Out, server.URL)
	}
	ctx, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer end()
	warnOfSilence(ctx, s, k.Address)
	return exit.With(exit.Internal, server.Serve(ctx, l))
}

// firstAnswer is how long a page waits for its registry before it warns that there is none.
const firstAnswer = 2 * time.Second

// warnOfSilence warns of a registry that does not answer now: it may later, so the page is served all the same.
func warnOfSilence(ctx context.Context, s console.Streams, address registry.Address) {
	if address.IsZero() {
		return
	}
	c, err := apps.Open(address)
	if err == nil {
		defer c.Close()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, firstAnswer)
		defer cancel()
		err = c.Ping(ctx)
	}
	if err != nil {
		fmt.Fprintf(s.Err, "warning: %v; until it answers the page says so, and shows none of its apps\n",
			apps.RegistryError(address, err))
	}
}

// servePage serves the page of this host until end is called, and tells each link of it.
func servePage(ctx context.Context, state status.Dir, tell func(link string)) (end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("run: --ui: %w", err))
	}
	server := ui.Server{
		Lookup: func(string) (apps.Lookup, error) { return apps.Lookup{State: state, Warn: io.Discard}, nil },
		Link:   tell,
		Ended:  "the run is over, and this page with it; muster ui shows it again",
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ctx, l) // the run goes on without its page
	}()
	return func() { cancel(); <-served }, nil
}

// lookup is where an app is looked for. What runs on the host of a cluster's page is its own users' business.
func (f *uiFlags) lookup(app string, s console.Streams, shared bool, over *apps.Over) (apps.Lookup, error) {
	k, err := f.ask.Lookup(app, s.Err)
	k.Over, k.Warn = over, io.Discard // what is asked each second would be told each second
	k.Past.Alone, k.Past.Listed = false, k.Past.Alone
	if shared {
		k.State = apps.NoState
	}
	return k, err
}

// shared tells that others than this user reach the page, and refuses what would let them in unasked.
func (f *uiFlags) shared() (bool, error) {
	socket, unix := strings.CutPrefix(f.listen, "unix:")
	host, _, err := net.SplitHostPort(f.listen)
	ip := net.ParseIP(host)
	alone := ip.IsLoopback()
	switch {
	case unix && !filepath.IsAbs(socket):
		return false, exit.Usagef("ui: --listen %q: want unix: and a path from /", f.listen)
	case !unix && (err != nil || host != "" && ip == nil):
		return false, exit.Usagef("ui: --listen %q: want ADDRESS:PORT, such as 127.0.0.1:8080, or unix:PATH", f.listen)
	case (f.cert == "") != (f.key == ""):
		return false, exit.Usagef("ui: --tls-cert and --tls-key come together")
	case alone && f.tokens == "" && f.header == "" && f.cert == "" && f.url == "" && f.appsURL == "":
		return false, nil
	case alone:
		return false, exit.Usagef("ui: --listen %s is for its own user, whom a link lets in: --tokens, --user-header, "+
			"--url, --apps-url and --tls-cert are for an address that others reach, or for unix:PATH behind a proxy",
			f.listen)
	case f.tokens == "" && f.header == "":
		return false, exit.Usagef("ui: --listen %s is reached by others: want --tokens or --user-header, which say "+
			"who they are", f.listen)
	case !unix && f.cert == "":
		return false, exit.Usagef("ui: --listen %s: want --tls-cert and --tls-key; a proxy on this host that has TLS "+
			"reaches it at unix:PATH", f.listen)
	case f.header != "" && !unix && len(f.proxies) == 0:
		return false, exit.Usagef("ui: --user-header %s: want --proxy, whose word counts", f.header)
	case f.header == "" && len(f.proxies)+len(f.actors) > 0:
		return false, exit.Usagef("ui: --proxy and --actor come with --user-header")
	case !f.ask.Registry.Named():
		return false, exit.Usagef("ui: --listen %s: want --registry, whose apps it shows", f.listen)
	}
	to, err := url.Parse(f.url)
	if err != nil || to.Scheme != "https" || to.Host == "" || strings.Trim(to.Path, "/") != "" {
		return false, exit.Usagef("ui: --url %q: want https://HOST or https://HOST:PORT, where browsers reach it",
			f.url)
	}
	if to, err = url.Parse(f.appsURL); err != nil || f.appsURL != "" && (to.Scheme != "https" ||
		!strings.HasPrefix(to.Host, "*.") || strings.Count(to.Host, "*") > 1 || strings.Trim(to.Path, "/") != "") {
		return false, exit.Usagef("ui: --apps-url %q: want https://*.HOST or https://*.HOST:PORT; all names below "+
			"HOST lead to this server, whose certificate is for *.HOST, too", f.appsURL)
	}
	return true, nil
}

// prefixes reads addresses, each alone or with its bits.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if alone, bad := netip.ParseAddr(text); bad == nil {
			p, err = alone.Prefix(alone.BitLen())
		}
		if err != nil || p.Addr().IsLoopback() {
			return nil, exit.Usagef("ui: --proxy %q: want an address or ADDRESS/BITS of another host; a proxy on this "+
				"one reaches it at --listen unix:PATH, where no other user does", text)
		}
		all = append(all, p)
	}
	return all, nil
}

// open listens.
func (f *uiFlags) open() (net.Listener, error) {
	if path, ok := strings.CutPrefix(f.listen, "unix:"); ok {
		l, err := status.Listen(path)
		if err != nil {
			return nil, err
		}
		return l, os.Chmod(path, 0o660) // the folder's group is the proxy's
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil || f.cert == "" {
		return l, err
	}
	pair := ui.KeyPair{Cert: f.cert, Key: f.key}
	if _, err := pair.Get(nil); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.Get}), nil
}
