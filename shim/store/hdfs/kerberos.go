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

	"github.com/muster-agent/muster/shim/store"
)

// ErrKerberos is that nobody believes who we are: there is no ticket, it has expired, a keytab is wrong, the clocks
// differ. The text says which.
var ErrKerberos = errors.New("kerberos")

// refused is an ErrKerberos with what would do.
func refused(hint, format string, args ...any) error {
	return &store.Error{Op: "kerberos", Err: fmt.Errorf("%w: "+format, append([]any{ErrKerberos}, args...)...), Hint: hint}
}

// ticket is who we are to Kerberos: by a keytab, from which we log in ourselves and again before it ends, or by the cache
// that kinit fills, which is read again when it has changed.
type ticket struct {
	keytab, principal, cache string

	mu     sync.Mutex
	client *krb.Client
	of     string // of which state of the file it is
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

// login logs in by the keytab, where the last login's ticket does not do any more.
func (t *ticket) login() (*krb.Client, error) {
	state, err := stateOf(t.keytab)
	if err != nil {
		return nil, refused("check --kerberos-keytab, and that this user may read it", "keytab: %v", err)
	}
	if t.client == nil || t.of != state {
		if t.client, err = t.withKeytab(); err != nil {
			return nil, err
		}
		t.of = state
	}
	if err := t.client.AffirmLogin(); err != nil {
		return nil, explainKerberos(err, t.keytab, t.principal)
	}
	return t.client, nil
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
		return nil, refused("name it by --kerberos-principal NAME@REALM", "keytab %s: got principal %q", t.keytab, t.principal)
	}
	return krb.NewWithKeytab(name, realm, kt, conf, krb.DisablePAFXFAST(true)), nil
}

// read reads the ticket cache, where it is another than last time.
func (t *ticket) read() (*krb.Client, error) {
	path, err := cachePath(t.cache)
	if err != nil {
		return nil, err
	}
	const hint = "kinit makes one, and KRB5CCNAME names it; an agent that runs long is given --kerberos-keytab and --kerberos-principal"
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
	own, ok := cache.GetEntry(types.PrincipalName{NameType: 2, NameString: []string{"krbtgt", cache.DefaultPrincipal.Realm}})
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
		return "", refused("set KRB5CCNAME=FILE:/PATH and kinit again, or give --kerberos-keytab", "got a ticket cache of kind %s, want a file", kind)
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

// The library's readers take a file for whole, and panic where it is not.

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

func shielded(err *error) {
	if r := recover(); r != nil {
		*err = errors.New("it is torn, or no such file")
	}
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

// explainKerberos says what the words of Kerberos mean (RFC 4120, 7.5.9).
func explainKerberos(err error, keytab, principal string) error {
	if _, told := errors.AsType[*store.Error](err); told {
		return err
	}
	text := err.Error()
	for _, known := range []struct{ word, says, hint string }{
		{"KRB_AP_ERR_SKEW", "the clocks of this machine and the KDC differ too much", "set them by NTP"},
		{"clock skew", "the clocks of this machine and the KDC differ too much", "set them by NTP"}, // before what the library says of it, too
		{"KDC_ERR_PREAUTH_FAILED", "the keytab's key is not the principal's", "get a new keytab: the principal's key was changed after it was made"},
		{"password/keytab incorrect", "the keytab's key is not the principal's", "get a new keytab: the principal's key was changed after it was made"},
		{"KRB_AP_ERR_BAD_INTEGRITY", "the keytab's key is not the principal's", "get a new keytab: the principal's key was changed after it was made"},
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC does not know the principal", "check --kerberos-principal and the realm"},
		{"KDC_ERR_S_PRINCIPAL_UNKNOWN", "the KDC does not know the NameNode", "check dfs.namenode.kerberos.principal, and that the NameNode is named by the host of its principal"},
		{"KRB_AP_ERR_TKT_EXPIRED", "the ticket has expired", "kinit makes a new one"},
		{"KDC_ERR_CLIENT_REVOKED", "the principal is locked", "ask who runs the KDC"},
		{"KDC_ERR_KEY_EXPIRED", "the principal's key has expired", "get a new keytab"},
		{"KDC_ERR_ETYPE_NOSUPP", "there is no encryption that both sides know", "get a keytab with aes256-cts-hmac-sha1-96"},
		{"matching key not found in keytab", "the keytab has no key of the principal", "klist -k shows whose keys it has; check --kerberos-principal"},
		{"no valid existing session", "the ticket has expired", "kinit makes a new one"},
		{"GSS initiate failed", "the NameNode does not take the ticket", "set the clocks by NTP; else its log says why"},
	} {
		if strings.Contains(text, known.word) {
			who := ""
			if keytab != "" {
				who = fmt.Sprintf("keytab %s, principal %s: ", keytab, principal)
			}
			return refused(known.hint, "%s%s (%s)", who, known.says, known.word)
		}
	}
	for _, away := range []string{"Networking_Error", "no KDC", "dial ", "connection refused", "i/o timeout", "no such host"} {
		if strings.Contains(text, away) {
			return &store.Error{Op: "kerberos", Err: fmt.Errorf("%w: the KDC: %w: %s", ErrKerberos, store.ErrUnreachable, firstLine(text)), Hint: "check the realm's kdc in KRB5_CONFIG, and the network"}
		}
	}
	return refused("kinit, klist and KRB5_TRACE=/dev/stderr tell more", "%s", firstLine(text))
}

// serviceTicket asks for a ticket to the NameNodes before they are greeted: the library tells nothing of why it got none.
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
