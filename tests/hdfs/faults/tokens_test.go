package faults

import (
	"bytes"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// Of a pair of NameNodes the active one takes the token, whichever it is, and one that is not taken is told as such.
func TestTokenOfAPair(t *testing.T) {
	c := hadoop.Start(t, hadoop.Options{Kerberos: true, HA: true, BlockSize: mib})
	byToken(t, c, c.Folder(t))
}

// byToken reads and writes by a token file alone, as Hadoop's own commands write it; there is no keytab, no ticket and
// no configuration of Kerberos.
func byToken(t *testing.T, c *hadoop.Cluster, dir string) {
	cache, file := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "tokens")
	c.KDC.AddUser(t, "tina")
	c.KDC.Kinit(t, cache, "tina")
	run := func(words ...string) {
		t.Helper()
		cmd := c.HDFS(words...)
		cmd.Env = append(cmd.Env, "KRB5CCNAME="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	const fetcher, util = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher", "org.apache.hadoop.security.token.DtUtilShell"
	t.Setenv("HADOOP_TOKEN_FILE_LOCATION", file)
	t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KRB5_CONFIG", filepath.Join(t.TempDir(), "none"))
	want := storetest.Noise(2*mib+99, 7)
	at := path.Join(dir, "by-token")
	open := func(dial bool) *hdfs.Store {
		t.Helper()
		conf := hdfs.Config{Conf: c.ConfDir, Patience: 30 * time.Second}
		if dial { // on a connection of its own
			conf.Dial = (&wires{}).dial
		}
		s, _, err := conf.Open(t.Context(), c.URI+dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := open(false).Stat(t.Context(), dir); !errors.Is(err, hdfs.ErrKerberos) || !strings.Contains(err.Error(), "token file: stat "+file) {
		t.Errorf("without the file: got %v", err)
	}
	run(fetcher, "--renewer", "tina", file)
	s := open(false)
	storetest.Put(t, s, at, want)
	if got := storetest.Get(t, s, at, 100_000); !bytes.Equal(got, want[100_000:]) {
		t.Errorf("other bytes came: %d", len(got))
	}
	if owner := strings.Fields(c.FsShell(t, "-ls", "-d", at))[2]; owner != "tina" {
		t.Errorf("the file is %s's, want tina's", owner)
	}
	run(fetcher, "--cancel", file)
	_, err := open(true).Stat(t.Context(), at)
	told, ok := errors.AsType[*store.Error](err)
	if !errors.Is(err, hdfs.ErrKerberos) || !ok || !strings.Contains(err.Error(), "delegation token of tina@LAB in "+file+" is not taken") || !strings.Contains(told.Hint, "fetchdt") {
		t.Errorf("a token that was cancelled: got %v", err)
	}
	t.Logf("a token that was cancelled: %v", err)
	run(util, "get", c.URI, "-renewer", "tina", "-format", "protobuf", file)
	if got := storetest.Get(t, open(true), at, 0); !bytes.Equal(got, want) {
		t.Errorf("by a new token: other bytes came: %d", len(got))
	}
}
