package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// part is what a Content-Range says: bytes first to last, both included, of total. -1: it does not know the total.
type part struct{ first, last, total int64 }

// parseContentRange reads `bytes FIRST-LAST/TOTAL` (RFC 9110, 14.4). Nothing that it accepts contradicts itself.
func parseContentRange(text string) (part, error) {
	bad := func() (part, error) {
		return part{total: -1}, fmt.Errorf(
			"%w: content-range: got %.80q, want bytes FIRST-LAST/TOTAL", store.ErrProtocol, text,
		)
	}
	unit, rest, ok := strings.Cut(text, " ")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return bad()
	}
	span, total, ok := strings.Cut(rest, "/")
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 {
		return bad()
	}
	p := part{total: -1}
	var err error
	if p.first, err = parseCount(from); err != nil {
		return bad()
	}
	if p.last, err = parseCount(to); err != nil || p.last < p.first {
		return bad()
	}
	if total == "*" {
		return p, nil
	}
	if p.total, err = parseCount(total); err != nil || p.total <= p.last {
		return bad()
	}
	return p, nil
}

// parseCount reads digits alone: strconv takes signs too.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err //nolint:gosec // 63 bits
}

// validator is what can be sent as If-Range (RFC 9110, 13.1.5): a strong ETag, or a date that is strong because the
// answer was made at least a second after it (8.8.2.2). Longer than maxValidator, it is none.
func validator(h http.Header) string {
	tag := h.Get("Etag")
	if len(tag) >= 2 && len(tag) <= maxValidator && tag[0] == '"' && strings.IndexByte(tag[1:], '"') == len(tag)-2 &&
		printable(tag) {
		return tag
	}
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || date.Sub(modified) < time.Second || len(h.Get("Last-Modified")) > maxValidator {
		return ""
	}
	return h.Get("Last-Modified")
}

const maxValidator = 1 << 10

// printable keeps what would break a header line out of it.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
