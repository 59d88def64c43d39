package hdfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"

	"github.com/muster-agent/muster/shim/store"
)

func TestNoTicket(t *testing.T) {
	dir := t.TempDir()
	conf := lay(t, map[string]string{"krb5.conf": "[libdefaults]\n default_realm = LAB\n[realms]\n LAB = {\n  kdc = 127.0.0.1:1\n }\n"})
	torn := filepath.Join(dir, "torn")
	if err := os.WriteFile(torn, []byte{5, 4, 0, 12, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, krb5 string
		ticket     *ticket
		want       string
	}{
		{"none", "krb5.conf", &ticket{cache: "FILE:" + dir + "/none"}, "there is no ticket"},
		{"torn", "krb5.conf", &ticket{cache: torn}, "ticket cache " + torn},
		{"in the kernel", "krb5.conf", &ticket{cache: "KEYRING:persistent:0"}, "kind KEYRING"},
		{"no keytab", "krb5.conf", &ticket{keytab: dir + "/none", principal: "a@LAB"}, "no such file"},
		{"a torn keytab", "krb5.conf", &ticket{keytab: torn, principal: "a@LAB"}, "keytab " + torn},
		{"no configuration", "none", &ticket{cache: torn}, "KRB5_CONFIG"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KRB5_CONFIG", filepath.Join(conf, tt.krb5))
			_, err := tt.ticket.get()
			told, ok := errors.AsType[*store.Error](err)
			if !errors.Is(err, ErrKerberos) || !ok || told.Hint == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s, and what would do", err, tt.want)
			}
		})
	}
}

// A login that fails while the ticket is valid is told once the ticket has ended.
func TestFirstFailedLoginIsTold(t *testing.T) {
	conf := lay(t, map[string]string{"krb5.conf": "[libdefaults]\n default_realm = LAB\n", "keytab": "torn"})
	keytab := filepath.Join(conf, "keytab")
	state, err := stateOf(keytab)
	if err != nil {
		t.Fatal(err)
	}
	held := &krb.Client{}
	k := &ticket{keytab: keytab, principal: "a@LAB", client: held, of: state, end: time.Now().Add(time.Hour)}
	t.Setenv("KRB5_CONFIG", filepath.Join(conf, "krb5.conf"))
	if got, err := k.get(); got != held || err != nil {
		t.Fatalf("got %v, %v, want the client of the valid ticket", got, err)
	}
	k.again, k.end = time.Time{}, time.Now()
	t.Setenv("KRB5_CONFIG", filepath.Join(conf, "none"))
	_, err = k.get()
	if _, told := errors.AsType[*store.Error](err); !told || !errors.Is(err, ErrKerberos) {
		t.Fatalf("got %v, want the last error", err)
	}
	for _, want := range []string{"KRB5_CONFIG", "logins failed before", "keytab " + keytab} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func FuzzTicketCache(f *testing.F) {
	f.Add([]byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{5, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseCache(b); err == nil && c == nil {
			t.Error("neither a cache nor an error")
		}
	})
}

func FuzzKeytab(f *testing.F) {
	f.Add([]byte{5, 2, 0, 0, 0, 4, 0, 1, 0, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if kt, err := parseKeytab(b); err == nil && kt == nil {
			t.Error("neither a keytab nor an error")
		}
	})
}

func FuzzKrb5Conf(f *testing.F) {
	f.Add([]byte("[libdefaults]\n default_realm = LAB\n[realms]\n LAB = {\n kdc = a\n}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseKrb5(b); err == nil && c == nil {
			t.Error("neither a configuration nor an error")
		}
	})
}
