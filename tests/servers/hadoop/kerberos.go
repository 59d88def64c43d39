package hadoop

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Realm is the realm of every KDC here.
const Realm = "LAB"

// service is whom the daemons are; under that name they are HDFS's superuser.
const service = "hdfs/localhost@" + Realm

// web is whom their HTTP servers are.
const web = "HTTP/localhost@" + Realm

// A KDC is MIT's, with a database of its own.
type KDC struct {
	// Config is krb5.conf: KRB5_CONFIG.
	Config string

	dir, tree string // of this KDC; of the programs
	port      int
}

// startKDC makes the database and the daemons' principals unless they are there, and starts the KDC.
func (c *Cluster) startKDC() error {
	k := c.kdc()
	if k.tree == "" {
		return fmt.Errorf("no KDC in %s (get it with scripts/lab/hadoop build)", c.home.dir)
	}
	if _, err := os.Stat(k.Config); err != nil {
		if err := k.create(c.options.ClockSkew); err != nil {
			return fmt.Errorf("make a KDC: %w", err)
		}
	}
	d := k.daemon(c)
	c.kdcDaemon = d
	if err := d.start(); err != nil {
		return err
	}
	if err := c.await(d, k.answers); err != nil {
		return err
	}
	return k.kinit(k.superuser(), service, k.keytab(service))
}

func (k *KDC) daemon(c *Cluster) *daemon {
	d := c.daemon("kdc", []string{"-n", "-P", filepath.Join(k.dir, "kdc.pid")})
	d.program, d.env = k.program("usr/sbin/krb5kdc"), k.environ()
	return d
}

func (c *Cluster) kdc() *KDC {
	if c.KDC == nil {
		dir := filepath.Join(c.Dir, "kdc")
		c.KDC = &KDC{Config: filepath.Join(dir, "krb5.conf"), dir: dir, tree: c.home.krb5, port: c.ports.KDC}
	}
	return c.KDC
}

func (k *KDC) create(skew int) error {
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return err
	}
	plugins, err := filepath.Glob(filepath.Join(k.tree, "usr/lib/*/krb5/plugins/kdb"))
	if err != nil || len(plugins) == 0 {
		return fmt.Errorf("%s has no database for a KDC", k.tree)
	}
	if skew == 0 {
		skew = 300
	}
	client := fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  forwardable = true
  clockskew = %[3]d
[realms]
  %[1]s = {
    kdc = 127.0.0.1:%[2]d
  }
[domain_realm]
  localhost = %[1]s
`, Realm, k.port, skew)
	server := fmt.Sprintf(`[kdcdefaults]
  kdc_listen = 127.0.0.1:%[2]d
  kdc_tcp_listen = 127.0.0.1:%[2]d
[realms]
  %[1]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    acl_file = %[3]s/acl
    master_key_type = aes256-cts-hmac-sha1-96
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
    max_life = 24h
    max_renewable_life = 7d
  }
[dbmodules]
  db_module_dir = %[4]s
[logging]
  kdc = FILE:%[3]s/kdc.log
`, Realm, k.port, k.dir, plugins[0])
	if err := os.WriteFile(filepath.Join(k.dir, "kdc.conf"), []byte(server), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(k.Config, []byte(client), 0o644); err != nil {
		return err
	}
	if err := k.run("usr/sbin/kdb5_util", "-r", Realm, "create", "-s", "-P", "lab"); err != nil {
		return err
	}
	for _, principal := range []string{service, web} {
		if err := k.add(principal); err != nil {
			return err
		}
	}
	return nil
}

// add makes a principal with a random key and writes its keytab.
func (k *KDC) add(principal string) error {
	if err := k.run("usr/sbin/kadmin.local", "addprinc", "-randkey", principal); err != nil {
		return err
	}
	return k.run("usr/sbin/kadmin.local", "ktadd", "-k", k.keytab(principal), "-norandkey", principal)
}

// keytab is the file that has a principal's key.
func (k *KDC) keytab(principal string) string {
	name, _, _ := strings.Cut(principal, "@")
	return filepath.Join(k.dir, strings.ReplaceAll(name, "/", "-")+".keytab")
}

// superuser is the ticket cache of HDFS's superuser.
func (k *KDC) superuser() string { return filepath.Join(k.dir, "superuser.ccache") }

// AddUser makes the principal NAME@LAB and returns the path of its keytab; HDFS takes it for the user NAME.
func (k *KDC) AddUser(t testing.TB, name string) string {
	t.Helper()
	principal := name + "@" + Realm
	if err := k.add(principal); err != nil {
		t.Fatal(err)
	}
	return k.keytab(principal)
}

// ChangeKey gives NAME@LAB another key: keytabs and passwords of before are wrong from here on.
func (k *KDC) ChangeKey(t testing.TB, name string) {
	t.Helper()
	if err := k.run("usr/sbin/kadmin.local", "cpw", "-randkey", name+"@"+Realm); err != nil {
		t.Fatal(err)
	}
}

// Life bounds the life of NAME@LAB's tickets from here on, and for how long they are renewed, as in "3 sec".
func (k *KDC) Life(t testing.TB, name, life, renewable string) {
	t.Helper()
	if err := k.run("usr/sbin/kadmin.local", "modprinc", "-maxlife", life, "-maxrenewlife", renewable,
		name+"@"+Realm); err != nil {
		t.Fatal(err)
	}
}

// Logins is how often NAME@LAB has got a ticket by its key.
func (k *KDC) Logins(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, "kdc.log"))
	if err != nil {
		t.Fatal(err)
	}
	logins := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "AS_REQ") && strings.Contains(line, "ISSUE") &&
			strings.Contains(line, " "+name+"@"+Realm+" for krbtgt/") {
			logins++
		}
	}
	return logins
}

// ShiftClock starts the KDC again with another time, as in "+1h"; it needs `scripts/lab/debian faketime libfaketime`.
func (c *Cluster) ShiftClock(t testing.TB, by string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "muster", "*-faketime-*", "usr/lib/*/faketime/libfaketime.so.1"))
	if err != nil || len(found) == 0 {
		need.Skip(t, "no libfaketime (get it with scripts/lab/debian faketime libfaketime)")
	}
	d := c.kdcDaemon
	d.kill()
	d.env = append(d.env, "LD_PRELOAD="+found[0], "FAKETIME="+by)
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	if err := c.await(d, c.KDC.answers); err != nil {
		t.Fatal(err)
	}
}

// answers fails while it takes no connections.
func (k *KDC) answers() error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", k.port))
	if err == nil {
		conn.Close()
	}
	return err
}

// Kinit writes a ticket of NAME@LAB, by its keytab, into a cache file; options are kinit's, such as -l 10s -r 1h.
func (k *KDC) Kinit(t testing.TB, cache, name string, options ...string) {
	t.Helper()
	principal := name + "@" + Realm
	if err := k.kinit(cache, principal, k.keytab(principal), options...); err != nil {
		t.Fatal(err)
	}
}

// Renew renews the ticket in a cache file, as kinit -R does.
func (k *KDC) Renew(t testing.TB, cache string) {
	t.Helper()
	if err := k.run("usr/bin/kinit", "-c", cache, "-R"); err != nil {
		t.Fatal(err)
	}
}

func (k *KDC) kinit(cache, principal, keytab string, options ...string) error {
	args := append([]string{"-c", cache, "-k", "-t", keytab}, options...)
	return k.run("usr/bin/kinit", append(args, principal)...)
}

// Environ is what programs that use the KDC have in their environment.
func (k *KDC) Environ() []string { return []string{"KRB5_CONFIG=" + k.Config} }

// environ is what the KDC's own programs need.
func (k *KDC) environ() []string {
	libraries, err := filepath.Glob(filepath.Join(k.tree, "usr/lib/*-linux-gnu*"))
	if err != nil {
		panic(err) // the pattern is ours
	}
	return append(os.Environ(), "KRB5_CONFIG="+k.Config, "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"),
		"LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
}

func (k *KDC) program(path string) string { return filepath.Join(k.tree, path) }

func (k *KDC) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program(program), args...)
	cmd.Env = k.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return nil
}

// secure is what the daemons and their clients must know.
func (c *Cluster) secure(core, hdfs map[string]string) {
	protection := c.options.Protection
	if protection == "" {
		protection = "authentication"
	}
	core["hadoop.security.authentication"] = "kerberos"
	core["hadoop.security.authorization"] = "true"
	core["hadoop.rpc.protection"] = protection
	core["hadoop.proxyuser.yarn.hosts"], core["hadoop.proxyuser.yarn.users"] = "*", "*"
	keytab := c.KDC.keytab(service)
	maps.Copy(hdfs, map[string]string{
		"dfs.block.access.token.enable":             strconv.FormatBool(true),
		"dfs.namenode.kerberos.principal":           service,
		"dfs.namenode.keytab.file":                  keytab,
		"dfs.datanode.kerberos.principal":           service,
		"dfs.datanode.keytab.file":                  keytab,
		"dfs.web.authentication.kerberos.principal": web,
		"dfs.web.authentication.kerberos.keytab":    c.KDC.keytab(web),
		"dfs.data.transfer.protection":              protection,
		// SASL guards the data. Otherwise either the ports would have to be root's or HTTP be HTTPS.
		"ignore.secure.ports.for.testing": "true",
	})
}

// properties are what every Java of the cluster has.
func (c *Cluster) properties() []string {
	if c.KDC == nil {
		return nil
	}
	return []string{"-Djava.security.krb5.conf=" + c.KDC.Config}
}
