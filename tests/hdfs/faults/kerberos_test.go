package faults

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// Who we are is known by a ticket, and what goes to and fro is signed or sealed.
func TestKerberos(t *testing.T) {
	for _, tt := range []struct {
		name, protection string
		site             map[string]string
	}{
		{"authentication", "authentication", nil},
		{"integrity", "integrity", nil},
		{"privacy", "privacy", nil},
		{"privacy by AES", "privacy", map[string]string{"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"}},
		{"encrypted by the cluster", "privacy", map[string]string{"dfs.encrypt.data.transfer": "true"}},
		{"encrypted by the cluster by AES", "privacy", map[string]string{"dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := hadoop.Start(t, hadoop.Options{Kerberos: true, Protection: tt.protection, BlockSize: mib, DataNodes: 1, Site: tt.site})
			t.Setenv("KRB5_CONFIG", c.KDC.Config)
			keytab := c.KDC.AddUser(t, "alice")
			dir := c.Folder(t)
			heard := &tap{}
			conf := hdfs.Config{Conf: c.ConfDir, Keytab: keytab, Principal: "alice@LAB", Patience: 30 * time.Second, Dial: heard.dial}
			s, _, err := conf.Open(t.Context(), c.URI+dir)
			if err != nil {
				t.Fatal(err)
			}
			want := storetest.Noise(5*mib+99, 3)
			storetest.Put(t, s, path.Join(dir, "a"), want)
			if got := storetest.Get(t, s, path.Join(dir, "a"), 100_000); !bytes.Equal(got, want[100_000:]) {
				t.Errorf("other bytes came: %d", len(got))
			}
			// the name of the file goes to the NameNode, the bytes to the DataNode
			readable := tt.protection != "privacy"
			if name := []byte(path.Join(dir, "a")); heard.saw(name) != readable || heard.saw(want[mib:mib+64]) != readable {
				t.Errorf("%s: who listens can read the name: %v, the bytes: %v", tt.protection, heard.saw(name), heard.saw(want[mib:mib+64]))
			}
			if !strings.HasSuffix(tt.name, "AES") { // of which the greeting of a NameNode knows nothing
				t.Run("a token file", func(t *testing.T) { byToken(t, c, dir) })
			}
			if tt.name == "privacy" {
				storetest.Run(t, s, path.Join(dir, "all"))
			}
			if tt.name == "authentication" {
				t.Run("who is nobody", func(t *testing.T) { nobody(t, c, keytab, dir) })
				t.Run("a ticket ends and is renewed", func(t *testing.T) { renewed(t, c, dir) })
				t.Run("a keytab logs in again and again", func(t *testing.T) { logsIn(t, c, dir) })
				t.Run("the clocks differ", func(t *testing.T) { otherClock(t, c, dir) })
			}
		})
	}
}

// tap hears what is written to connections.
type tap struct {
	mu  sync.Mutex
	all bytes.Buffer
}

type tapped struct {
	net.Conn
	to *tap
}

func (t *tap) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return tapped{c, t}, nil
}

func (t tapped) Write(b []byte) (int, error) {
	t.to.mu.Lock()
	t.to.all.Write(b)
	t.to.mu.Unlock()
	return t.Conn.Write(b)
}

func (t *tap) saw(b []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.all.Bytes(), b)
}

// nobody is refused with a word of why and what would do.
func nobody(t *testing.T, c *hadoop.Cluster, keytab, dir string) {
	other := c.KDC.AddUser(t, "bob")
	c.KDC.ChangeKey(t, "bob") // his keytab is of an older key
	none := filepath.Join(t.TempDir(), "none")
	open := t.TempDir() // a configuration that knows of no Kerberos
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		text, err := os.ReadFile(filepath.Join(c.ConfDir, name))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("<value>kerberos</value>"), []byte("<value>simple</value>"))
		if err := os.WriteFile(filepath.Join(open, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		conf hdfs.Config
		want string
	}{
		{"an old keytab", hdfs.Config{Keytab: other, Principal: "bob@LAB"}, "the keytab's key is not the principal's"},
		{"another's keytab", hdfs.Config{Keytab: keytab, Principal: "bob@LAB"}, "keytab"},
		{"a principal that is not there", hdfs.Config{Keytab: keytab, Principal: "carol@LAB"}, "carol"},
		{"no ticket", hdfs.Config{CCache: "FILE:" + none}, "there is no ticket"},
		{"no Kerberos on our side", hdfs.Config{Conf: open, User: "alice"}, "hadoop.security.authentication"},
	} {
		tt.conf.Patience = 2 * time.Second
		if tt.conf.Conf == "" {
			tt.conf.Conf = c.ConfDir
		}
		s, _, err := tt.conf.Open(t.Context(), c.URI+dir)
		if err == nil {
			_, err = s.Stat(t.Context(), dir)
		}
		told, ok := errors.AsType[*store.Error](err)
		if !errors.Is(err, hdfs.ErrKerberos) || !ok || told.Hint == "" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s and what would do", tt.name, err, tt.want)
		}
		t.Logf("%s: %v", tt.name, err)
	}
	s, _, err := hdfs.Config{Conf: c.ConfDir, Keytab: keytab, Principal: "alice@LAB"}.Open(t.Context(), c.URI)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "/forbidden"); !errors.Is(err, fs.ErrPermission) || errors.Is(err, hdfs.ErrKerberos) || !strings.Contains(err.Error(), "user=alice") {
		t.Errorf("got %v, want that alice may not", err)
	}
}

// renewed reads and writes while the ticket of the cache ends: what is open goes on, what is new is refused by name, and
// goes on when there is a new ticket.
func renewed(t *testing.T, c *hadoop.Cluster, dir string) {
	cache := filepath.Join(t.TempDir(), "cache")
	c.KDC.AddUser(t, "dora")
	c.KDC.Kinit(t, cache, "dora", "-l", "12s")
	conf := hdfs.Config{Conf: c.ConfDir, CCache: "FILE:" + cache, Patience: 2 * time.Second}
	s, _, err := conf.Open(t.Context(), c.URI)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(t.Context(), path.Join(dir, "long"))
	if err != nil {
		t.Fatal(err)
	}
	want := storetest.Noise(2*mib, 5)
	if _, err := w.Write(want[:mib/2]); err != nil {
		t.Fatal(err)
	}
	var ended error
	for deadline := time.Now().Add(90 * time.Second); ended == nil; { // each asks on a connection of its own
		if time.Now().After(deadline) {
			t.Fatal("the ticket does not end")
		}
		fresh, _, err := hdfs.Config{Conf: c.ConfDir, CCache: "FILE:" + cache, Patience: time.Second, Dial: (&wires{}).dial}.Open(t.Context(), c.URI)
		if err != nil {
			t.Fatal(err)
		}
		_, ended = fresh.Stat(t.Context(), dir)
	}
	if !errors.Is(ended, hdfs.ErrKerberos) || !strings.Contains(ended.Error(), "expired") || !strings.Contains(ended.Error(), "kinit") {
		t.Errorf("an ended ticket: got %v", ended)
	}
	if _, err := w.Write(want[mib/2:]); err != nil {
		t.Errorf("what was open: %v", err)
	}
	c.KDC.Kinit(t, cache, "dora", "-l", "1h")
	if err := w.Close(); err != nil {
		t.Errorf("what was open: %v", err)
	}
	if got := storetest.Get(t, s, path.Join(dir, "long"), 0); !bytes.Equal(got, want) {
		t.Errorf("other bytes are there: %d of %d", len(got), len(want))
	}
	if err := (transfer.Transfer{}).Bring(t.Context(), root(t, t.TempDir()), []transfer.Copy{{From: transfer.File{Store: s, Path: path.Join(dir, "long")}, To: "a"}}); err != nil {
		t.Error(err)
	}
}

// logsIn goes on with one keytab for longer than its tickets live and are renewed, three times over, each time on a new connection.
func logsIn(t *testing.T, c *hadoop.Cluster, dir string) {
	keytab := c.KDC.AddUser(t, "erin")
	c.KDC.Life(t, "erin", "2 sec", "3 sec")
	w := &wires{}
	s, _, err := hdfs.Config{Conf: c.ConfDir, Keytab: keytab, Principal: "erin@LAB", Patience: time.Second, Dial: w.dial}.Open(t.Context(), c.URI)
	if err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(90 * time.Second); c.KDC.Logins(t, "erin") < 4; <-poll.C {
		w.cut(t)
		if _, err := s.Stat(t.Context(), dir); err != nil {
			t.Fatalf("after %d logins: %v", c.KDC.Logins(t, "erin"), err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d logins", c.KDC.Logins(t, "erin"))
		}
	}
}

// otherClock is a KDC whose clock is an hour ahead.
func otherClock(t *testing.T, c *hadoop.Cluster, dir string) {
	keytab := c.KDC.AddUser(t, "fred")
	c.ShiftClock(t, "+1h")
	s, _, err := hdfs.Config{Conf: c.ConfDir, Keytab: keytab, Principal: "fred@LAB", Patience: 2 * time.Second}.Open(t.Context(), c.URI)
	if err == nil {
		_, err = s.Stat(t.Context(), dir)
	}
	told, ok := errors.AsType[*store.Error](err)
	if !errors.Is(err, hdfs.ErrKerberos) || !ok || !strings.Contains(err.Error(), "the clocks of this machine and the KDC differ too much") || !strings.Contains(told.Hint, "NTP") {
		t.Errorf("got %v", err)
	}
}
