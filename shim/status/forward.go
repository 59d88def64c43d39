package status

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Through is a client of the agent of that name, whose API a server forwards below a URL. What proves to the server who
// asks is with the http client.
func Through(forwarded, name string, by *http.Client) *Client {
	return &Client{base: forwarded, path: name, http: by}
}

// Forward answers a request with what the agent answers to it at a path of its API, the streams of a program included.
// Who asks is the client: nothing that the caller shows as a proof of that is handed on.
func (c *Client) Forward(w http.ResponseWriter, r *http.Request, path string) {
	to, err := url.Parse(c.base + path)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	to.RawQuery = r.URL.RawQuery
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = to, to.Host
			for _, proof := range []string{"Authorization", "Cookie", grantHeader} {
				p.Out.Header.Del(proof)
			}
			c.identify(p.Out)
		},
		Transport: c.http.Transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // the answer says it
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			text := "agent at " + c.path + ": " + err.Error()
			if why := Unreached(err); why != nil {
				text = "the agent at " + c.path + " does not answer (" + why.Error() + ")"
			}
			refuse(w, http.StatusBadGateway, text, "")
		},
	}
	proxy.ServeHTTP(w, r)
}
