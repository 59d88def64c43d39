package hdfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
