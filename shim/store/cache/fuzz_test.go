package cache

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/web"
)

// answers is a server that says the same to whatever is asked.
type answers struct {
	status int
	header http.Header
	length int64
	body   []byte
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), ContentLength: a.length, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// Whatever a server answers, content begins where it says, a validator can be sent back in a header, and a file that is
// given out is what its digest says.
func FuzzAnswer(f *testing.F) {
	f.Add(206, "bytes 4-9/10", `"v1"`, "", "", int64(6), []byte("456789"), int64(4))
	f.Add(200, "", `W/"v1"`, "Thu, 01 Jan 2026 00:00:00 GMT", "", int64(-1), []byte("0123456789"), int64(4))
	f.Add(416, "bytes */10", "\"a\nb\"", "yesterday", "", int64(0), []byte(nil), int64(10))
	f.Add(302, "", "", "", "http://127.0.0.1/again", int64(0), []byte(nil), int64(0))
	f.Add(503, "", "", "", "", int64(1<<62), []byte("x"), int64(0))
	f.Fuzz(func(t *testing.T, status int, contentRange, etag, modified, location string, length int64, body []byte, offset int64) {
		if status < 100 || status > 999 || length < -1 {
			t.Skip() // net/http lets no such thing through
		}
		cache := t.TempDir()
		synctest.Test(t, func(t *testing.T) { // it would wait between two tries
			h := http.Header{
				"Content-Range": {contentRange}, "Etag": {etag}, "Last-Modified": {modified}, "Location": {location}, "Retry-After": {contentRange},
				"Date": {"Thu, 01 Jan 2026 00:01:00 GMT"},
			}
			stores := store.Set{"http": web.With(http.Client{Transport: answers{status, h, length, body}})}
			opened, path, err := stores.Open(t.Context(), "http://127.0.0.1/a")
			must(t, err)
			if offset < 0 {
				offset = -(offset + 1)
			}
			c, err := opened.Open(t.Context(), path, store.Position{Offset: offset, Validator: `"v1"`})
			if err == nil {
				if c.Offset != 0 && c.Offset != offset || c.Info.Size < -1 {
					t.Fatalf("got offset %d, size %d, asked for %d", c.Offset, c.Info.Size, offset)
				}
				if strings.ContainsAny(c.Info.Validator, "\r\n\x00") || len(c.Info.Validator) > 1<<10 {
					t.Fatalf("got validator %q", c.Info.Validator)
				}
				must(t, c.Close())
			}
			file, err := Fetch(t.Context(), Request{URL: "http://127.0.0.1/a", CacheDir: cache, Retries: -1, MaxBytes: 1 << 20, Stores: stores})
			if err == nil {
				checkFile(t, file, body)
				must(t, file.Close())
			}
		})
	})
}
