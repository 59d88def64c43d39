package embedded

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzTxn: no body makes the server fail, and every answer has the shape that a client decodes.
func FuzzTxn(f *testing.F) {
	for _, body := range []string{
		`[]`, `null`, `{}`, `[null]`, `[{}]`, `[{"KV":null}]`, `[{"KV":{}}]`, `[[]]`, `"`, `[{"KV":{"Verb":"set","Key":""}}]`,
		`[{"KV":{"Verb":"set","Key":"a","Value":"eA=="}},{"KV":{"Verb":"get","Key":"a"}}]`,
		`[{"KV":{"Verb":"cas","Key":"a","Index":0}},{"KV":{"Verb":"delete-tree","Key":""}},{"KV":{"Verb":"get-tree"}}]`,
		`[{"KV":{"Verb":"lock","Key":"a","Session":"S"}},{"KV":{"Verb":"unlock","Key":"a","Session":"S"}},{"KV":{"Verb":"check-session","Key":"a"}}]`,
		`[{"KV":{"Verb":"check-index","Key":"a","Index":18446744073709551615}},{"KV":{"Verb":"check-not-exists","Key":"b"}}]`,
		`[{"KV":{"Verb":"get-or-empty","Key":"\ud800","Flags":1}},{"KV":{"Verb":"delete-cas","Key":"a"}},{"KV":{"Verb":"delete","Key":"a"}}]`,
		`[{"Node":{}},{"Service":{}},{"Check":{}}]`, `[` + strings.Repeat(`{},`, 128) + `{}]`, strings.Repeat(`[`, 10000),
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := New(Options{})
		defer s.Close()
		id, err := s.createSession(sessionInfo{Node: nodeName})
		if err != nil {
			t.Fatal(err)
		}
		ask(s, "PUT", "/v1/kv/a", "x")
		w := ask(s, "PUT", "/v1/txn", strings.ReplaceAll(body, `"S"`, `"`+id+`"`))
		switch w.Code {
		case http.StatusOK, http.StatusConflict:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusNotImplemented:
			if ask(s, "GET", "/v1/kv/a?raw", "").Body.String() != "x" {
				t.Errorf("answered %d but wrote", w.Code)
			}
			return
		default:
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		var got struct {
			Results []struct{ KV *entry }
			Errors  []opError
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("got %s: %v", w.Body, err)
		}
		if (w.Code == http.StatusConflict) != (len(got.Errors) > 0) || len(got.Errors) > 0 && got.Results != nil {
			t.Fatalf("got %d with %s", w.Code, w.Body)
		}
	})
}
