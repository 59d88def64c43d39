package store

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// harmless are the headers of a request that say what is wanted, and not who asks. Referer is none: the query of a
// signed URL is a credential.
var harmless = []string{
	"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "If-Range", "Range", "User-Agent",
}

// DropCredentials takes all headers off a redirected request that may be credentials, unless it goes to the origin that
// they were meant for: net/http knows Authorization and Cookie alone, and compares no ports and no schemes.
func DropCredentials(to *http.Request, via []*http.Request) {
	if len(via) == 0 || sameOrigin(to.URL, via[0].URL) {
		return
	}
	for name := range to.Header {
		if !slices.Contains(harmless, http.CanonicalHeaderKey(name)) {
			to.Header.Del(name)
		}
	}
}

// sameOrigin tells that two URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	}
	return "80"
}
