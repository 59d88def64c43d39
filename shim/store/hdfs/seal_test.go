package hdfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/muster-agent/muster/shim/store"
)

// greets is a NameNode that answers a greeting by what it offers; empty: it offers no protection.
func greets(offer string) func(context.Context, string, string) (net.Conn, error) {
	method := text(1, []byte("TOKEN"))
	if offer != "" {
		method = append(method, text(5, []byte(`realm="default",nonce="x",qop="`+offer+`",charset=utf-8,algorithm=md5-sess`))...)
	}
	negotiate := packet(piece(message(varint(1, saslCall), varint(2, 0))), piece(message(varint(2, saslNegotiate), text(4, method))))
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(negotiate)
			_ = theirs.Close()
		}()
		return ours, nil
	}
}

// What the configuration says of protection is the least that will do: an offer that somebody has made smaller is
// refused before anything is shown.
func TestProtectionIsAFloor(t *testing.T) {
	for _, tt := range []struct {
		conf, offer string
		ok          bool
	}{
		{"", "", true},
		{"", "auth", true},
		{"authentication", "auth", true},
		{"authentication", "", true},
		{"authentication", "auth-conf", true},
		{"integrity", "auth-int", true},
		{"integrity", "auth-conf,auth-int", true},
		{"integrity", "auth", false},
		{"privacy", "auth-conf", true},
		{"Privacy", "auth-int", false},
		{"privacy", "auth", false},
		{"privacy", "", false},
		{"privacy,integrity", "auth-int", true},
		{"privacy,authentication", "auth", true},
	} {
		t.Run(tt.conf+" of "+tt.offer, func(t *testing.T) {
			w := newWires(t.Context(), greets(tt.offer), newExcluded())
			defer w.close()
			w.least = Conf{rpcProtection: tt.conf}.leastProtection()
			w.session = func(string) (types.EncryptionKey, error) {
				return types.EncryptionKey{}, errors.New("nothing is to be shown")
			}
			c, err := w.openName(t.Context(), "tcp", "nn:8020")
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(onlyReader{c})
			weak := err != nil && strings.Contains(err.Error(), rpcProtection)
			if weak == tt.ok || weak && len(said) > 0 || !weak && !bytes.Contains(said, []byte("TOKEN")) {
				t.Errorf("got %d bytes, %v; want that it is taken: %v", len(said), err, tt.ok)
			}
			if weak {
				told := meaning(errors.New(noNameNodes+": SASL handshake: "+err.Error()), refusal{})
				if !errors.Is(told, ErrKerberos) || errors.Is(told, store.ErrUnreachable) || !strings.Contains(told.Error(), "--hadoop-conf") {
					t.Errorf("got %v", told)
				}
			}
		})
	}
	if err := (Conf{rpcProtection: "privacy,all"}).check(); err == nil || !strings.Contains(err.Error(), `"all"`) {
		t.Errorf("got %v", err)
	}
}

type onlyReader struct{ io.Reader }
