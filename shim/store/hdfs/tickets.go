package hdfs

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Tickets is a ticket cache for a child process, in the format of MIT's libraries and Java: the file's content, and
// when its ticket ends. With a keytab it is a new login; else the content of our own cache.
func (c Config) Tickets() (cache []byte, end time.Time, err error) {
	if c.Keytab != "" {
		t := &ticket{keytab: c.Keytab, principal: c.Principal}
		client, err := t.withKeytab()
		if err != nil {
			return nil, end, err
		}
		return t.loginCache(client)
	}
	path, err := cachePath(cmp.Or(c.CCache, os.Getenv("KRB5CCNAME")))
	if err != nil {
		return nil, end, err
	}
	text, err := readSmall(path)
	if err != nil {
		return nil, end, refused("kinit makes one", "ticket cache: %v", err)
	}
	held, err := parseCache(slices.Clip(text)) // the library reads on into what a slice has behind its end
	if err != nil {
		return nil, end, refused("kinit makes a new one", "ticket cache %s: %v", path, err)
	}
	own, ok := held.GetEntry(types.PrincipalName{
		NameType: nameService, NameString: []string{"krbtgt", held.DefaultPrincipal.Realm},
	})
	if !ok {
		return nil, end, refused("kinit makes one", "there is no ticket in %s that others are got by", path)
	}
	return text, own.EndTime, nil
}

// nameService is the kind of a service's name (RFC 4120, 6.2: NT-SRV-INST).
const nameService = 2

// loginCache logs in by the client's keytab. The client does not have the ticket: the cache has it.
func (t *ticket) loginCache(client *krb.Client) (cache []byte, end time.Time, err error) {
	realm, name := client.Credentials.Domain(), client.Credentials.CName()
	request, err := messages.NewASReqForTGT(realm, client.Config, name)
	if err != nil {
		return nil, end, explainKerberos(err, t.keytab, t.principal)
	}
	answer, err := client.ASExchange(realm, request, 0)
	if err != nil {
		return nil, end, explainKerberos(err, t.keytab, t.principal)
	}
	text, err := encodeCache(answer)
	return text, answer.DecryptedEncPart.EndTime, err
}

// encodeCache writes the one ticket as a cache of version 4 (MIT's ccache_file_format).
func encodeCache(a messages.ASRep) ([]byte, error) {
	held, err := a.Ticket.Marshal()
	if err != nil {
		return nil, err
	}
	enc := a.DecryptedEncPart
	// a header with no offset of the clock
	w := cacheWriter{5, 4, 0, 12, 0, 1, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	w.principal(a.CRealm, a.CName)
	w.principal(a.CRealm, a.CName)
	w.principal(enc.SRealm, enc.SName)
	w = binary.BigEndian.AppendUint16(w, uint16(enc.Key.KeyType))
	w.data(enc.Key.KeyValue)
	start := enc.StartTime
	if start.IsZero() {
		start = enc.AuthTime
	}
	for _, t := range []time.Time{enc.AuthTime, start, enc.EndTime, enc.RenewTill} {
		if t.IsZero() {
			t = time.Unix(0, 0)
		}
		w.number(uint32(t.Unix()))
	}
	w = append(w, 0) // no user's own key
	flags := make([]byte, 4)
	copy(flags, enc.Flags.Bytes)
	w = append(w, flags...)
	w.number(0) // addresses
	w.number(0) // data about the client
	w.data(held)
	w.data(nil)
	return w, nil
}

// cacheWriter is a cache in the writing: numbers are in network order.
type cacheWriter []byte

func (w *cacheWriter) number(n uint32) { *w = binary.BigEndian.AppendUint32(*w, n) }

func (w *cacheWriter) data(b []byte) {
	w.number(uint32(len(b)))
	*w = append(*w, b...)
}

func (w *cacheWriter) principal(realm string, name types.PrincipalName) {
	w.number(uint32(name.NameType))
	w.number(uint32(len(name.NameString)))
	w.data([]byte(realm))
	for _, part := range name.NameString {
		w.data([]byte(part))
	}
}
