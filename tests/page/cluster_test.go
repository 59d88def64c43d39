package page

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/servers/ports"
)

// certificate writes a certificate for localhost, and its key.
func (l *lab) certificate() (cert, key string) {
	l.t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	one := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, one, one, &pair.PublicKey, pair)
	if err != nil {
		l.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		l.t.Fatal(err)
	}
	cert, key = filepath.Join(l.dir, "ui.pem"), filepath.Join(l.dir, "ui.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	return cert, key
}

// token has muster ui token make one, into the file.
func (l *lab) token(file string, args ...string) (secret string) {
	l.t.Helper()
	var said strings.Builder
	cmd := exec.Command(muster, append([]string{"ui", "token"}, args...)...)
	cmd.Stderr = &said
	line, err := cmd.Output()
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(line); err != nil {
		l.t.Fatal(err)
	}
	return strings.TrimSpace(said.String())
}

// The page of a cluster: over TLS, by tokens; who may look sees nothing to act with, who may act stops a run in their
// own name.
func TestClusterPage(t *testing.T) {
	l := newLab(t)
	b := newBrowser(t)
	cert, key := l.certificate()
	file := filepath.Join(l.dir, "ui.tokens")
	ann, bob := l.token(file, "ann"), l.token(file, "--act", "bob")
	l.train("digits", "site.global.train.steps=100000", "site.global.train.pace=0.05")
	address := fmt.Sprintf("%s:%d", l.net.Addr(0), ports.Claim(t, 1)[0])
	_, port, _ := strings.Cut(address, ":")
	base := "https://localhost:" + port
	l.start(0, "ui", "ui", "--registry", l.registry(), "--listen", address, "--url", base, "--tls-cert", cert, "--tls-key", key, "--tokens", file)
	await(t, "its address", func() bool { return strings.Contains(l.said("ui"), base) })
	l.forward(address)

	b.do("open", chromedp.Navigate(base+"/apps/digits"))
	b.accessible("the login")
	b.do("a wrong token", chromedp.SendKeys("#token", ann+"X"), chromedp.Submit("#token"))
	b.awaitText("body", "No token of this server.")
	b.do("login", chromedp.Navigate(base+"/login"), chromedp.SendKeys("#token", ann), chromedp.Submit("#token"))
	b.awaitText("#user", "ann, who may look")
	b.press("tbody", "digits")
	b.awaitText("td", "worker-2")
	b.await("nothing to act with", nothingToActWith)
	b.press("#user", "Log out")
	b.do("login", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", bob), chromedp.Submit("#token"))
	b.awaitText("#user", "bob")
	b.press("tbody", "digits")
	b.press(".acts", "Stop …")
	b.press("dialog", "Stop")
	b.awaitText("dd", "stopped: stopped by bob")
	if text := l.said("ui"); !strings.Contains(text, "user=bob act=/api/v1/apps/digits/stop") || strings.Contains(text, ann) || strings.Contains(text, bob) {
		t.Errorf("the server's log:\n%s", text)
	}
}
