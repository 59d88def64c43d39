package hdfs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// short is a string in Hadoop's own encoding, one shorter than 112 bytes.
func short(s string) string { return string([]byte{byte(len(s))}) + s }

// past is a time in 2004, in ms.
const past = "\x8a\x01\x00\x00\x00\x00\x00"

// identifierOf is a token's: of alice, renewed by yarn, until a time.
func identifierOf(end string) string {
	return "\x00" + short("alice@LAB") + short("yarn") + short("") + past + end + "\x01\x02"
}

func TestTokenFiles(t *testing.T) {
	long := strings.Repeat("i", 300) // its length is one of three bytes
	one := token{identifier: []byte("id"), password: []byte("pw"), kind: tokenKind, service: "127.0.0.1:8020"}
	inner := string(bytesField(1, one.identifier)) + string(bytesField(2, one.password)) +
		string(bytesField(3, []byte(one.kind))) + string(bytesField(4, []byte(one.service)))
	alias := string(bytesField(1, []byte("nn"))) + string(bytesField(2, []byte(inner)))
	for _, tt := range []struct {
		name, text string
		want       []token
		wrong      string
	}{
		{"two", "HDTS\x00\x02" + short("nn") + short("id") + short("pw") + short(tokenKind) + short("127.0.0.1:8020") +
			short("rm") + "\x8e\x01\x2c" + long + short("") + short("RM") + short("") + "\x00", []token{one, {[]byte(long), []byte{}, "RM", ""}}, ""},
		{"none", "HDTS\x00\x00\x00", nil, ""},
		{"protobuf", "HDTS\x01" + string(pieceOf(bytesField(1, []byte(alias)))), []token{one}, ""},
		{"another file", "<configuration>", nil, "it is no token file"},
		{"empty", "", nil, "it is no token file"},
		{"a version to come", "HDTS\x02\x00", nil, "got version 2 of a token file, want 0 or 1"},
		{"torn", "HDTS\x00\x01" + short("nn") + "\x20id", nil, "it is torn"},
		{"a count beyond its end", "HDTS\x00\x8c\x7f\xff\xff\xff", nil, "it is torn"},
		{"a negative count", "HDTS\x00\xff\x00", nil, "it is torn"},
		{"torn protobuf", "HDTS\x01\x20\x0a", nil, "it is torn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseTokens([]byte(tt.text))
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("got %v, want %s", err, tt.wrong)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzTokenFile(f *testing.F) {
	f.Add([]byte("HDTS\x00\x01" + short("nn") + short(identifierOf(past)) + short("pw") + short(tokenKind) + short("a:1")))
	f.Add([]byte("HDTS\x01\x20\x0a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseTokens(text)
		if err != nil {
			return
		}
		for _, one := range all {
			if len(one.identifier)+len(one.password)+len(one.kind)+len(one.service) > len(text) {
				t.Errorf("got more than %d bytes: %q", len(text), one)
			}
			_, _, _ = one.holder()
		}
	})
}

func TestTokenOfACluster(t *testing.T) {
	lookup := func(host string) ([]string, error) {
		if host == "nn1" {
			return []string{"10.0.0.1", "10.0.0.2"}, nil
		}
		return nil, errors.New("no such host")
	}
	for service, want := range map[string]bool{
		"ha-hdfs:lab": true, "ha-hdfs:other": false, "nn1:8020": true, "10.0.0.2:8020": true, "10.0.0.3:8020": false,
		"10.0.0.2:9000": false, "nn3:8020": false, "": false,
	} {
		one := token{kind: tokenKind, service: service}
		if got := one.fits("lab", []string{"nn1:8020", "nn2:8020"}, lookup); got != want {
			t.Errorf("%q: got %v, want %v", service, got, want)
		}
		one.kind = "RM_DELEGATION_TOKEN"
		if one.fits("lab", []string{"nn1:8020"}, lookup) {
			t.Errorf("%q: YARN's own does", service)
		}
	}
}

// What is wrong with a token is said before anybody is asked.
func TestTokensThatDoNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	t.Setenv(tokensVariable, file)
	t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "none"))
	conf := t.TempDir()
	site := `<configuration><property><name>hadoop.security.authentication</name><value>kerberos</value></property>` +
		`<property><name>dfs.namenode.kerberos.principal</name><value>nn/_HOST@LAB</value></property></configuration>`
	if err := os.WriteFile(filepath.Join(conf, "core-site.xml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(service, identifier string) string {
		return "HDTS\x00\x01" + short("nn") + short(identifier) + short("pw") + short(tokenKind) + short(service) + "\x00"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"ended", of("127.0.0.1:1", identifierOf(past)), "the delegation token of alice@LAB ended at 2004-11-03T"},
		{"another cluster's", of("10.0.0.9:8020", identifierOf(past)), `got tokens for ["HDFS_DELEGATION_TOKEN 10.0.0.9:8020"], none for 127.0.0.1:1`},
		{"no identifier", of("127.0.0.1:1", ""), "the token for 127.0.0.1:1: it is torn"},
		{"no file of tokens", "tokens", "it is no token file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, _, err := Config{Conf: conf, Patience: time.Second}.Open(t.Context(), "hdfs://127.0.0.1:1/")
			if err == nil {
				_, err = s.Stat(t.Context(), "/")
			}
			told, ok := errors.AsType[*store.Error](err)
			if !errors.Is(err, ErrKerberos) || !ok || told.Hint == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s and what would do", err, tt.want)
			}
		})
	}
}

// The example of RFC 2831, 4.
func TestDigestOfATokensGreeting(t *testing.T) {
	d := digest{
		user: "chris", password: "secret", realm: "elwood.innosoft.com", nonce: "OA6MG9tEQGm2hh",
		cnonce: "OA6MHXh6VqTrRk", uri: "imap/elwood.innosoft.com", quality: "auth",
	}
	for word, want := range map[string]string{"AUTHENTICATE": "d388dad90d4bbd760a152321f2143af7", "": "ea40f60335c427b5527b84dbabcdfffd"} {
		if got := d.proof(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

// A token file that others may write, or that is somebody else's, is not the agent's to use or to hand on.
func TestTokensOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("HDTS\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokensVariable, file)
	for mode, want := range map[os.FileMode]string{0o600: "", 0o644: "", 0o664: "", 0o666: "want one in which others may not write"} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := TokenFile(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%#o: got %v, want %q", mode, err, want)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(file, 0o600), os.Chown(file, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenFile(); err == nil || !strings.Contains(err.Error(), "belongs to the agent's user") {
		t.Errorf("of another user: got %v", err)
	}
}
