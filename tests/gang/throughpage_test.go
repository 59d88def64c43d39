package gang

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/ports"
)

// laptop is a host that reaches a page, and neither the registry nor the agents.
type laptop struct {
	*gang
	ui, authority string
	page          *process
}

// newLaptop starts the page: ann may look, bob may act.
func (g *gang) newLaptop() laptop {
	g.t.Helper()
	dir := g.t.TempDir()
	authority := httptest.NewTLSServer(nil) // whose certificate is for 127.0.0.1
	authority.Close()
	pair := authority.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		g.t.Fatal(err)
	}
	lines := ""
	for _, one := range []string{"ann read", "bob act"} {
		name, _, _ := strings.Cut(one, " ")
		lines += fmt.Sprintf("%s %x\n", one, sha256.Sum256([]byte(name+"s-secret")))
	}
	at := map[string]string{}
	for name, text := range map[string][]byte{
		"cert":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"key":    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		"tokens": []byte(lines),
	} {
		at[name] = filepath.Join(dir, name)
		if err := os.WriteFile(at[name], text, 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	port := ports.Claim(g.t, 1)[0]
	l := laptop{gang: g, ui: fmt.Sprintf("https://127.0.0.1:%d", port), authority: at["cert"]}
	l.page = g.elsewhere("ui", "--listen", fmt.Sprintf(":%d", port), "--url", l.ui, "--tls-cert", at["cert"], "--tls-key", at["key"],
		"--tokens", at["tokens"])
	await(g.t, "the page", func() bool { return strings.Contains(l.page.out(), l.ui) })
	return l
}

// as runs a verb through the page as one of its users.
func (l laptop) as(user, verb string, args ...string) *process {
	l.t.Helper()
	env := l.environment("SSL_CERT_FILE="+l.authority, "MUSTER_UI_TOKEN="+user+"s-secret", "CONSUL_HTTP_ADDR=127.0.0.1:1")
	return start(l.t, verb+" through the page", env, append([]string{verb, "--ui", l.ui}, args...)...)
}

// throughPage: who reaches a page alone gets the words and exit codes of a host of the registry.
func throughPage(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.output.model": "out"}))
	cast := g.begin("--api-listen", "127.0.0.1:0")
	for in, a := range cast {
		a.do(cue{Do: "say", Text: "one of " + in})
	}
	l := g.newLaptop()
	w0 := g.app + "/worker-0"
	for _, tt := range [][]string{
		{"status", g.app},
		{"status", g.app, "--json"},
		{"ps", g.app},
		{"logs", w0, "--stderr"},
		{"logs", g.app, "--stderr", "--tail", "1"},
		{"logs", w0, "--grep", "one", "--json"},
		{"events", g.app},
		{"events", w0, "--json"},
		{"flex", g.app, "worker=1", "--explain"},
		{"flex", g.app, "none=1"},
		{"save", "no-such-app"},
		{"stop", "no-such-app"},
		{"status", "no-such-app"},
		{"logs", g.app + "/worker-7"},
		{"logs", w0, "--side", "nope"},
		{"signal", g.app + "/worker-7", "KILL"},
		{"hold", w0, "--release"},
		{"command", w0, "GET_CONFIG"},
		{"exec", w0, "--", "sh", "-c", "echo in $MUSTER_INSTANCE; echo aside >&2; exit 7"},
		{"exec", w0, "--", "sh", "-c", "kill -9 $$"},
	} {
		l.same(tt)
	}
	if p := l.as("ann", "ps"); p.wait() != 0 || !strings.Contains(p.out(), g.app) {
		t.Errorf("ps: %s%s", p.out(), p.err())
	}
	if p := l.as("ann", "top", g.app, "--json"); p.wait() != 0 || !strings.Contains(p.out(), `"phase": "running"`) {
		t.Errorf("top: %s%s", p.out(), p.err())
	}
	l.refuses(w0)
	follower := l.as("ann", "logs", g.app, "--stderr", "-f")
	await(t, "what was written before", func() bool { return strings.Contains(follower.out(), "one of worker-0") })
	cast["worker-0"].do(cue{Do: "say", Text: "two of worker-0"})
	await(t, "what is written now", func() bool { return strings.Contains(follower.out(), "two of worker-0") })
	if p := l.as("bob", "save", g.app); p.wait() != 0 || !strings.Contains(p.out(), g.app+": saved by 2 instances in ") {
		t.Errorf("save: %s%s", p.out(), p.err())
	}
	if p := l.as("bob", "signal", w0, "KILL"); p.wait() != 0 {
		t.Errorf("signal: %s", p.err())
	}
	cast["worker-0"].gone()
	g.stage.next("worker-0")
	if p := l.as("bob", "stop", g.app); p.wait() != 0 || p.out() != g.app+": stopped by bob\n" {
		t.Errorf("stop: %s%s", p.out(), p.err())
	}
	if p := l.as("ann", "status", g.app, "--wait"); p.wait() != 0 || !strings.Contains(p.out(), "stopped by bob") {
		t.Errorf("status --wait: %s%s", p.out(), p.err())
	}
	if text := l.page.err(); strings.Contains(text, "s-secret") || !strings.Contains(text, "user=bob act=/api/v1/apps/"+w0[:len(g.app)]+"/asks") {
		t.Errorf("the page's log:\n%s", text)
	}
}

// same runs a verb through the page and on a host of the registry. Where they differ once the gang may have gone on between
// the two.
func (l laptop) same(verb []string) {
	l.t.Helper()
	for tries := 3; ; tries-- {
		here, there := l.elsewhere(verb[0], verb[1:]...), l.as("bob", verb[0], verb[1:]...)
		a, b := here.wait(), there.wait()
		switch {
		case a == b && here.out() == there.out() && here.err() == there.err():
			return
		case tries == 0:
			l.t.Errorf("%q: code %d through the page, %d elsewhere\n%s%s--- elsewhere\n%s%s", verb, b, a, there.out(), there.err(), here.out(), here.err())
			return
		}
	}
}

// refuses: who may look only acts on nothing; without a token that the page knows, or a certificate that this host knows,
// nobody even looks.
func (l laptop) refuses(instance string) {
	l.t.Helper()
	for _, tt := range [][]string{
		{"stop", l.app},
		{"save", l.app},
		{"flex", l.app, "worker=1"},
		{"kill", l.app},
		{"signal", instance, "KILL"},
		{"hold", instance, "--release"},
		{"command", instance, "GET_CONFIG"},
		{"exec", instance, "--", "true"},
	} {
		p := l.as("ann", tt[0], tt[1:]...)
		if code := p.wait(); code != 77 || !strings.Contains(p.err(), "ann may look at apps, and not act on them") {
			l.t.Errorf("%q by who may look: code %d\n%s", tt, code, p.err())
		}
	}
	for _, tt := range []struct {
		what, want string
		env        []string
		code       int
	}{
		{"no token", "want a token in MUSTER_UI_TOKEN, or in a file", nil, 64},
		{"another token", "it does not know the token of this user", []string{"MUSTER_UI_TOKEN=eve", "SSL_CERT_FILE=" + l.authority}, 77},
		{"another authority", "its certificate is not trusted here, so nothing was sent", []string{"MUSTER_UI_TOKEN=anns-secret"}, 77},
	} {
		p := start(l.t, tt.what, l.environment(slices.Concat(tt.env, []string{"MUSTER_UI_TOKEN_FILE="})...), "status", l.app, "--ui", l.ui)
		if code := p.wait(); code != tt.code || !strings.Contains(p.err(), tt.want) {
			l.t.Errorf("%s: code %d, want %d\n%s", tt.what, code, tt.code, p.err())
		}
	}
}
