package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is our Kerberos identity: by a keytab, with which muster logs in, or by the cache that kinit fills, which is
// read again when it has changed.
type ticket struct {
	keytab, principal, cache string

	mu     sync.Mutex
	client *krb.Client
	of     string    // the state of the file that it was read from
	again  time.Time // when a login is due again
	end    time.Time // of the login's ticket
	failed error     // the first login that failed since the ticket came; nil: none
}

// get gives a client that has a ticket. The library's users share it.
func (t *ticket) get() (*krb.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keytab != "" {
		return t.login()
	}
	return t.read()
}

// login logs in by the keytab when two thirds of the last ticket's life are over; if the KDC is away then, the ticket
// does until its end. Each login is a client of its own, made of the ticket alone: the library's client with a keytab
// renews tickets in a goroutine, and when a user of it logs in meanwhile, both can wait for each other for ever (gokrb5
// 8.4.4, client/session.go, sessions.update). A client made of the ticket has no such goroutine for its own realm. For
// a NameNode of another realm the library starts one, which ends with that realm's ticket.
func (t *ticket) login() (*krb.Client, error) {
	state, err := stateOf(t.keytab)
	if err != nil {
		return nil, refused("check --kerberos-keytab, and that this user may read it", "keytab: %v", err)
	}
	begun := time.Now()
	if t.client != nil && t.of == state && begun.Before(t.again) {
		return t.client, nil
	}
	client, end, err := t.newLogin()
	if err != nil {
		if now := time.Now(); t.client != nil && t.of == state && now.Before(t.end) {
			t.again = now.Add(t.end.Sub(now) / 4)
			if t.failed == nil {
				t.failed = err
			}
			return t.client, nil
		}
		return nil, t.sinceFailed(err)
	}
	t.client, t.of, t.end, t.failed = client, state, end, nil
	t.again = begun.Add(end.Sub(begun) * 2 / 3)
	return client, nil
}

// sinceFailed adds the first cause to the error of a login. It is text alone: the last error says what to do next.
func (t *ticket) sinceFailed(err error) error {
	if t.failed == nil || t.failed.Error() == err.Error() {
		return err
	}
	return fmt.Errorf("%w (logins failed before: %s)", err, t.failed.Error())
}

// newLogin is a client with a new ticket, and the ticket's end.
func (t *ticket) newLogin() (client *krb.Client, end time.Time, err error) {
	keyed, err := t.withKeytab()
	if err != nil {
		return nil, end, err
	}
	text, end, err := t.loginCache(keyed)
	if err != nil {
		return nil, end, err
	}
	held, err := parseCache(text)
	if err == nil {
		client, err = newFromCache(held, keyed.Config)
	}
	if err != nil {
		return nil, end, refused("see the KDC's log", "the ticket that came: %v", err)
	}
	return client, end, nil
}

func (t *ticket) withKeytab() (*krb.Client, error) {
	conf, err := krb5Conf()
	if err != nil {
		return nil, err
	}
	text, err := readSmall(t.keytab)
	if err != nil {
		return nil, refused("check --kerberos-keytab, and that this user may read it", "keytab: %v", err)
	}
	kt, err := parseKeytab(text)
	if err != nil {
		return nil, refused("make it again with ktutil or kadmin ktadd", "keytab %s: %v", t.keytab, err)
	}
	name, realm, _ := strings.Cut(t.principal, "@")
	realm = cmp.Or(realm, conf.LibDefaults.DefaultRealm)
	if name == "" || realm == "" {
		return nil, refused(
			"name it by --kerberos-principal NAME@REALM", "keytab %s: got principal %q", t.keytab, t.principal,
		)
	}
	return krb.NewWithKeytab(name, realm, kt, conf, krb.DisablePAFXFAST(true)), nil
}

// read reads the ticket cache, where it is another than last time.
func (t *ticket) read() (*krb.Client, error) {
	path, err := cachePath(t.cache)
	if err != nil {
		return nil, err
	}
	const hint = "kinit makes one, and KRB5CCNAME names it; an agent that runs long is given --kerberos-keytab and " +
		"--kerberos-principal"
	state, err := stateOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refused(hint, "there is no ticket: %s is not there", path)
	}
	if err != nil {
		return nil, refused(hint, "ticket cache: %v", err)
	}
	if t.client == nil || t.of != state {
		client, err := fromCache(path)
		if err != nil {
			return nil, err
		}
		t.client, t.of = client, state
	}
	return t.client, t.current(path)
}

// current refuses a ticket that has expired; the client would only say so much later.
func (t *ticket) current(path string) error {
	text, err := readSmall(path)
	if err != nil {
		return refused("", "ticket cache: %v", err)
	}
	cache, err := parseCache(text)
	if err != nil {
		return refused("kinit makes a new one", "ticket cache %s: %v", path, err)
	}
	own, ok := cache.GetEntry(types.PrincipalName{
		NameType: 2, NameString: []string{"krbtgt", cache.DefaultPrincipal.Realm},
	})
	if !ok {
		return refused("kinit makes one", "there is no ticket in %s that others are got by", path)
	}
	if end := own.EndTime; time.Now().After(end) {
		return refused("kinit makes a new one: it is read again, nothing has to be restarted",
			"the ticket in %s expired at %s", path, end.UTC().Format(time.RFC3339))
	}
	return nil
}

func fromCache(path string) (*krb.Client, error) {
	conf, err := krb5Conf()
	if err != nil {
		return nil, err
	}
	text, err := readSmall(path)
	if err != nil {
		return nil, refused("", "ticket cache: %v", err)
	}
	cache, err := parseCache(text)
	if err != nil {
		return nil, refused("kinit makes a new one", "ticket cache %s: %v", path, err)
	}
	client, err := newFromCache(cache, conf)
	if err != nil {
		return nil, refused("kinit makes one", "ticket cache %s: %v", path, err)
	}
	return client, nil
}

// cachePath is the file of a ticket cache as KRB5CCNAME names it.
func cachePath(name string) (string, error) {
	name = cmp.Or(name, os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
	kind, path, ok := strings.Cut(name, ":")
	if !ok || strings.HasPrefix(name, "/") {
		return name, nil
	}
	if kind != "FILE" && kind != "WRFILE" {
		return "", refused(
			"set KRB5CCNAME=FILE:/PATH and kinit again, or give --kerberos-keytab",
			"got a ticket cache of kind %s, want a file", kind,
		)
	}
	return path, nil
}

// krb5Conf is Kerberos' own configuration.
func krb5Conf() (*config.Config, error) {
	path, _, _ := strings.Cut(cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"), ":")
	const hint = "KRB5_CONFIG names it"
	text, err := readSmall(path)
	if err != nil {
		return nil, refused(hint, "its configuration: %v", err)
	}
	conf, err := parseKrb5(text)
	if _, part := errors.AsType[config.UnsupportedDirective](err); part { // include: the rest has been read
		err = nil
	}
	if err != nil {
		return nil, refused(hint, "its configuration %s: %v", path, err)
	}
	return conf, nil
}

// The library's readers expect complete files, and panic otherwise.

func parseKrb5(text []byte) (conf *config.Config, err error) {
	defer shielded(&err)
	return config.NewFromString(string(text))
}

func parseKeytab(text []byte) (kt *keytab.Keytab, err error) {
	defer shielded(&err)
	kt = keytab.New()
	return kt, kt.Unmarshal(slices.Clip(text))
}

func newFromCache(c *credentials.CCache, conf *config.Config) (client *krb.Client, err error) {
	defer shielded(&err)
	return krb.NewFromCCache(c, conf, krb.DisablePAFXFAST(true))
}

// stateOf changes when a file does.
func stateOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	ino := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		ino = st.Ino
	}
	return fmt.Sprint(ino, info.Size(), info.ModTime().UnixNano()), nil
}

// serviceTicket asks for a ticket to the NameNodes before they are greeted: the library tells nothing of why it got
// none.
func serviceTicket(ctx context.Context, client *krb.Client, principal string, addresses []string) error {
	var first error
	for _, address := range addresses {
		done := make(chan error, 1)
		go func() {
			_, _, err := client.GetServiceTicket(servicePrincipal(principal, address))
			done <- err
		}()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-done:
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// servicePrincipal is a NameNode's own name: _HOST is its host.
func servicePrincipal(principal, address string) string {
	host, _, _ := strings.Cut(address, ":")
	name, _, _ := strings.Cut(principal, "@")
	return strings.Replace(name, "/_HOST", "/"+host, 1)
}
