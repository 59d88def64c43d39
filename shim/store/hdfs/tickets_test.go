package hdfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// forwardable is a flag of a ticket (RFC 4120, 5.3).
const forwardable = 1

// login is an answer of a KDC's, of which nothing was ever encrypted.
func login(end time.Time) messages.ASRep {
	alice := types.PrincipalName{NameType: 1, NameString: []string{"alice", "host"}}
	krbtgt := types.PrincipalName{NameType: nameService, NameString: []string{"krbtgt", "LAB"}}
	flags := types.NewKrbFlags()
	types.SetFlag(&flags, forwardable)
	var a messages.ASRep
	a.CRealm, a.CName = "LAB", alice
	a.Ticket = messages.Ticket{TktVNO: 5, Realm: "LAB", SName: krbtgt, EncPart: types.EncryptedData{EType: 18, Cipher: []byte("sealed")}}
	a.DecryptedEncPart = messages.EncKDCRepPart{
		Key: types.EncryptionKey{KeyType: 18, KeyValue: bytes.Repeat([]byte{7}, 32)}, SRealm: "LAB", SName: krbtgt,
		Flags: flags, AuthTime: end.Add(-time.Hour), EndTime: end,
	}
	return a
}

// What is written as a cache is read as one, with the same principal, key, times and ticket.
func TestTicketsAreACache(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	a := login(end)
	text, err := encodeCache(a)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := parseCache(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := cache.DefaultPrincipal; got.Realm != "LAB" || got.PrincipalName.PrincipalNameString() != "alice/host" {
		t.Errorf("principal: got %+v", got)
	}
	own, ok := cache.GetEntry(a.DecryptedEncPart.SName)
	if !ok {
		t.Fatal("there is no ticket")
	}
	held, err := a.Ticket.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if own.Key.KeyType != 18 || !bytes.Equal(own.Key.KeyValue, a.DecryptedEncPart.Key.KeyValue) || !bytes.Equal(own.Ticket, held) {
		t.Errorf("key or ticket: got %+v", own)
	}
	if !own.EndTime.Equal(end) || !own.AuthTime.Equal(end.Add(-time.Hour)) || !own.StartTime.Equal(own.AuthTime) || !types.IsFlagSet(&own.TicketFlags, forwardable) {
		t.Errorf("times or flags: got %+v", own)
	}
}

// The operator's cache is handed on byte by byte; one that cannot be is an error that says what would do.
func TestTicketsOfTheOperator(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	text, err := encodeCache(login(end))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cc")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, until, err := Config{CCache: "FILE:" + path}.Tickets()
	if err != nil || !bytes.Equal(got, text) || !until.Equal(end) {
		t.Errorf("got %d bytes until %s, %v, want %d until %s", len(got), until, err, len(text), end)
	}
	t.Setenv("KRB5CCNAME", path)
	if got, _, err := (Config{}).Tickets(); err != nil || !bytes.Equal(got, text) {
		t.Errorf("of KRB5CCNAME: got %d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(path+"torn", text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{path + "none", path + "torn", "KEYRING:x"} {
		if _, _, err := (Config{CCache: cache}).Tickets(); err == nil {
			t.Errorf("%s: got no error", cache)
		}
	}
}
