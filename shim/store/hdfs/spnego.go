package hdfs

import (
	"net/http"
	"strings"

	"github.com/jcmturner/gokrb5/v8/spnego"
)

// Negotiator shows HTTP servers of a cluster our ticket (SPNEGO, RFC 4559): it adds to a request what its server wants.
func (c Config) Negotiator() func(*http.Request) error {
	t := &ticket{keytab: c.Keytab, principal: c.Principal, cache: c.CCache}
	return func(r *http.Request) error {
		client, err := t.get()
		if err != nil {
			return err
		}
		server := "HTTP/" + r.URL.Hostname()
		err = spnego.SetSPNEGOHeader(client, r, server)
		if err != nil && strings.Contains(err.Error(), "KDC_ERR_S_PRINCIPAL_UNKNOWN") {
			return refused("name it by the host of its principal", "the KDC does not know %s", server)
		}
		if err != nil {
			return explainKerberos(err, c.Keytab, c.Principal)
		}
		return nil
	}
}
