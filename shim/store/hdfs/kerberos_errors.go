package hdfs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-agent/muster/shim/store"
)

// ErrKerberos is a failed authentication: there is no ticket, it has expired, a keytab is wrong, or the clocks differ.
// The text says which.
var ErrKerberos = errors.New("kerberos")

// refused is an ErrKerberos with what would do.
func refused(hint, format string, args ...any) error {
	return &store.Error{
		Op: "kerberos", Err: fmt.Errorf("%w: "+format, append([]any{ErrKerberos}, args...)...), Hint: hint,
	}
}

// explainKerberos explains the error codes of Kerberos (RFC 4120, 7.5.9).
func explainKerberos(err error, keytab, principal string) error {
	if _, told := errors.AsType[*store.Error](err); told {
		return err
	}
	text := err.Error()
	for _, known := range []struct{ word, says, hint string }{
		{"KRB_AP_ERR_SKEW", "the clocks of this machine and the KDC differ too much", "set them by NTP"},
		// also before the library's own message
		{"clock skew", "the clocks of this machine and the KDC differ too much", "set them by NTP"},
		{"KDC_ERR_PREAUTH_FAILED", "the keytab's key is not the principal's", "get a new keytab: the principal's key " +
			"was changed after it was made"},
		{"password/keytab incorrect", "the keytab's key is not the principal's", "get a new keytab: the principal's " +
			"key was changed after it was made"},
		{"KRB_AP_ERR_BAD_INTEGRITY", "the keytab's key is not the principal's", "get a new keytab: the principal's " +
			"key was changed after it was made"},
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC does not know the principal", "check --kerberos-principal and the " +
			"realm"},
		{"KDC_ERR_S_PRINCIPAL_UNKNOWN", "the KDC does not know the " +
			"NameNode", "check dfs.namenode.kerberos.principal, and that the NameNode is named by the host of its " +
			"principal"},
		{"KRB_AP_ERR_TKT_EXPIRED", "the ticket has expired", "kinit makes a new one"},
		{"KDC_ERR_CLIENT_REVOKED", "the principal is locked", "ask who runs the KDC"},
		{"KDC_ERR_KEY_EXPIRED", "the principal's key has expired", "get a new keytab"},
		{"KDC_ERR_ETYPE_NOSUPP", "there is no encryption that both sides " +
			"know", "get a keytab with aes256-cts-hmac-sha1-96"},
		{"matching key not found in keytab", "the keytab has no key of the principal", "klist -k shows whose keys it " +
			"has; check --kerberos-principal"},
		{"no valid existing session", "the ticket has expired", "kinit makes a new one"},
		{"GSS initiate failed", "the NameNode does not take the ticket", "set the clocks by NTP; else its log says " +
			"why"},
	} {
		if strings.Contains(text, known.word) {
			who := ""
			if keytab != "" {
				who = fmt.Sprintf("keytab %s, principal %s: ", keytab, principal)
			}
			return refused(known.hint, "%s%s (%s)", who, known.says, known.word)
		}
	}
	for _, away := range []string{
		"Networking_Error", "no KDC", "dial ", "connection refused", "i/o timeout", "no such host",
	} {
		if strings.Contains(text, away) {
			return &store.Error{
				Op:   "kerberos",
				Err:  fmt.Errorf("%w: the KDC: %w: %s", ErrKerberos, store.ErrUnreachable, firstLine(text)),
				Hint: "check the realm's kdc in KRB5_CONFIG, and the network",
			}
		}
	}
	return refused("kinit, klist and KRB5_TRACE=/dev/stderr tell more", "%s", firstLine(text))
}

// newToken is what would do where one has ended.
const newToken = "write a new one over it, as hdfs fetchdt does with a ticket: it is read again, nothing has to be " +
	"restarted; a run that is longer than tokens live is given --kerberos-keytab"

// besideTokens says of a missing ticket that a token file had nothing for the cluster either.
func besideTokens(err error, noToken string) error {
	told, ok := errors.AsType[*store.Error](err)
	if noToken == "" || !ok {
		return err
	}
	return &store.Error{Op: told.Op, URL: told.URL, Hint: told.Hint, Err: fmt.Errorf("%w; %s", told.Err, noToken)}
}

// shielded makes an error of a panic: readers of files expect complete ones.
func shielded(err *error) {
	if r := recover(); r != nil {
		*err = errors.New("it is torn, or no such file")
	}
}
