package embedded

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// maxOps is the number of operations that one transaction may have.
const maxOps = 128

// txnOp is one element of a transaction's body. Kinds other than KV are decoded only to name them in the refusal.
type txnOp struct {
	KV                   *kvOp
	Node, Service, Check json.RawMessage
}

// kvOp is an operation as it is sent; namespace and partition are accepted and ignored, as in the open-source Consul.
type kvOp struct {
	Verb      txnVerb
	Key       string
	Value     []byte
	Flags     uint64
	Index     uint64
	Session   string
	Namespace string
	Partition string
}

// txnAnswer is what a transaction answers, refused or not.
type txnAnswer struct {
	Results []opResult
	Errors  []opError
}

func (s *Server) txn(r *http.Request) (reply, error) {
	if r.ContentLength > maxValue {
		return reply{}, tooLarge("Request body(%d bytes) too large, max size: %d bytes.", r.ContentLength, maxValue)
	}
	if _, err := parseWaiting(r.URL.Query()); err != nil {
		return reply{}, err
	}
	ops, err := decodeTxn(http.MaxBytesReader(nil, r.Body, maxValue))
	if err != nil {
		return reply{}, err
	}
	var answer txnAnswer
	s.write(func(st *keyStore, now time.Time) (touched changes) {
		answer.Results, answer.Errors, touched = st.txn(now, ops)
		return touched
	})
	if answer.Errors != nil {
		return reply{code: http.StatusConflict, body: answer}, nil
	}
	return reply{body: answer}, nil
}

// decodeTxn reads the operations; it skips an element without any.
func decodeTxn(body io.Reader) ([]operation, error) {
	var sent []*txnOp
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&sent); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge("Request body too large, max size: %d bytes.", maxValue)
		}
		return nil, badRequest("Failed to parse body: " + err.Error())
	}
	if len(sent) > maxOps {
		return nil, tooLarge("Transaction contains too many operations (%d > %d)", len(sent), maxOps)
	}
	ops := make([]operation, 0, len(sent))
	for _, o := range sent {
		if o == nil {
			return nil, badRequest("Failed to parse body: an operation is null")
		}
		if o.KV != nil {
			ops = append(ops, operation{o.KV.Verb, o.KV.Key, o.KV.Value, o.KV.Flags, o.KV.Index, o.KV.Session})
			continue
		}
		if err := o.foreign(); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

func (o *txnOp) foreign() error {
	for name, body := range map[string]json.RawMessage{"Node": o.Node, "Service": o.Service, "Check": o.Check} {
		if len(body) > 0 && string(body) != "null" {
			return httpError{
				http.StatusNotImplemented,
				"operation " + name +
					" in a transaction is not in muster's embedded registry; use a real Consul for it",
			}
		}
	}
	return nil
}
