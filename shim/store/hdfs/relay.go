package hdfs

import (
	"bytes"
	"crypto/rand"
	"fmt"
)

// relay is a connection to a DataNode of a cluster that encrypts all data by one key. There the library does its own
// greeting, and misreads data that is not encrypted by AES. So relay answers in the DataNode's place that nothing is
// protected, greets the DataNode as in other clusters, and sends nothing in the clear.
type relay struct {
	protected
	greeting *digest
	answers  bytes.Buffer
}

func (r *relay) Write(b []byte) (int, error) {
	switch {
	case bytes.HasPrefix(b, magic):
		d, err := r.credentials(nil)
		if err != nil {
			return 0, err
		}
		d.realm, d.nonce, d.quality = "0", rand.Text(), "auth"
		r.greeting = &d
		r.says(fmt.Sprintf(`realm="%s",nonce="%s",qop="auth",charset=utf-8,algorithm=md5-sess`, d.realm, d.nonce))
	case r.greeting != nil:
		message, _ := delimited(b)
		r.greeting.cnonce = directives(data(fields(message), 2))["cnonce"]
		r.says("rspauth=" + r.greeting.proof(""))
		r.greeting = nil
	default:
		return r.protected.Write(b)
	}
	return len(b), nil
}

func (r *relay) says(text string) { r.answers.Write(pieceOf(encryptor(text, false))) }

func (r *relay) Read(b []byte) (int, error) {
	if r.answers.Len() > 0 {
		return r.answers.Read(b)
	}
	return r.protected.Read(b)
}
