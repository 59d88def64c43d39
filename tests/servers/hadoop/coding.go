package hadoop

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// EraseCode has files of a folder kept as stripes, two of data and one of parity, on three DataNodes at least; for
// clusters without Kerberos.
func (c *Cluster) EraseCode(t testing.TB, dir string) {
	t.Helper()
	const policy = "XOR-2-1-1024k"
	c.web(t, "/", url.Values{"op": {"ENABLEECPOLICY"}, "ecpolicy": {policy}})
	c.web(t, dir, url.Values{"op": {"SETECPOLICY"}, "ecpolicy": {policy}})
}

// zoneKey is the key of all encrypted folders here.
const zoneKey = "zone"

// Keys makes a key for encrypted folders and returns what a cluster's Site must say of it. It stands for a server of
// keys (KMS): a NameNode reads the same from a file.
func Keys(t testing.TB) map[string]string {
	t.Helper()
	dir := t.TempDir()
	site := map[string]string{"hadoop.security.key.provider.path": "jceks://file" + filepath.Join(dir, "keys.jceks")}
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		if err := os.WriteFile(filepath.Join(dir, name), siteXML(site), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cluster{Dir: dir, ConfDir: dir, home: needed(t)}
	c.run(t, "org.apache.hadoop.crypto.key.KeyShell", "create", zoneKey)
	return site
}

// Encrypt makes an empty folder one whose files are encrypted, of a cluster that was started with Keys.
func (c *Cluster) Encrypt(t testing.TB, dir string) {
	t.Helper()
	c.run(t, "org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", zoneKey, "-path", dir)
}
