package hadoop

import (
	"errors"
	"maps"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/shim/store/hdfs"
)

// managers is whom YARN's daemons are behind a KDC; they act for whoever submits.
const managers = "yarn/localhost@" + Realm

// secure has YARN's daemons log in, and ask everybody who comes by RPC or HTTP for a ticket. Clients have the ordinary
// user's.
func (y *YARN) secure(site map[string]string) error {
	k := y.c.KDC
	own := filepath.Join(y.Dir, "keys")
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	keytabs := map[string]string{managers: filepath.Join(own, "yarn"), web: filepath.Join(own, "http")}
	y.tickets = filepath.Join(own, "tickets")
	secret := filepath.Join(own, "secret")
	user := Nobody + "@" + Realm
	err := errors.Join(os.WriteFile(secret, []byte("lab"), 0o600), os.Chown(secret, nobodyID, nobodyID))
	for _, principal := range []string{managers, user} {
		if _, gone := os.Stat(k.keytab(principal)); gone != nil {
			err = errors.Join(err, k.add(principal))
		}
	}
	for principal, path := range keytabs {
		text, bad := os.ReadFile(k.keytab(principal))
		err = errors.Join(err, bad, os.WriteFile(path, text, 0o600), os.Chown(path, nobodyID, nobodyID))
	}
	if err = errors.Join(err, k.kinit(y.tickets, user, k.keytab(user))); err != nil {
		return err
	}
	maps.Copy(site, map[string]string{
		"yarn.resourcemanager.principal":                      managers,
		"yarn.resourcemanager.keytab":                         keytabs[managers],
		"yarn.nodemanager.principal":                          managers,
		"yarn.nodemanager.keytab":                             keytabs[managers],
		"yarn.resourcemanager.webapp.spnego-principal":        web,
		"yarn.resourcemanager.webapp.spnego-keytab-file":      keytabs[web],
		"yarn.nodemanager.webapp.spnego-principal":            web,
		"yarn.nodemanager.webapp.spnego-keytab-file":          keytabs[web],
		"hadoop.http.filter.initializers":                     "org.apache.hadoop.security.AuthenticationFilterInitializer",
		"hadoop.http.authentication.type":                     "kerberos",
		"hadoop.http.authentication.kerberos.principal":       web,
		"hadoop.http.authentication.kerberos.keytab":          keytabs[web],
		"hadoop.http.authentication.signature.secret.file":    secret,
		"hadoop.http.authentication.simple.anonymous.allowed": "false",
	})
	y.t.Setenv("KRB5_CONFIG", k.Config)
	y.show = hdfs.Config{CCache: "FILE:" + y.tickets}.Negotiator()
	return nil
}

// java is the environment, NAME=VALUE, by which every Java finds the KDC; elsewhere it is in /etc.
func (y *YARN) java() []string {
	var all []string
	for _, property := range y.c.properties() {
		all = append(all, "JAVA_TOOL_OPTIONS="+property)
	}
	return all
}
