package gate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/status"
)

const key = "0123456789abcdef"

// behind starts a program that tells what it was asked, and the gate before it.
func behind(t *testing.T) (at string, port int) {
	t.Helper()
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = both.Flush()
			line, _ := both.ReadString('\n')
			_, _ = conn.Write([]byte("echo " + line))
			return
		}
		fmt.Fprintf(w, "%s %s auth=%q cookies=%q", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	}))
	t.Cleanup(program.Close)
	u, err := url.Parse(program.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, l, Page{Name: "board", Port: port, Key: key, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the gate has not ended")
		}
	})
	return "http://" + l.Addr().String(), port
}

func TestGate(t *testing.T) {
	at, port := behind(t)
	cookie := fmt.Sprintf("muster_key_%d=", port)
	for _, tt := range []struct {
		name, method, path string
		head               map[string]string
		code               int
		want               string // in the body, or where a redirect leads
	}{
		{"nothing", "GET", "/", nil, 401, "board asks for its key"},
		{"a wrong key", "GET", "/?token=0123", nil, 401, "asks for its key"},
		{"no key", "GET", "/?token=", nil, 401, "asks for its key"},
		{"a wrong bearer", "GET", "/", map[string]string{"Authorization": "Bearer x"}, 401, ""},
		{"a wrong cookie", "GET", "/", map[string]string{"Cookie": cookie + "x"}, 401, ""},
		{"the link", "GET", "/runs/1?token=" + key + "&a=b", nil, 303, "/runs/1?a=b"},
		{"a link elsewhere", "GET", "//example.org/x?token=" + key, nil, 303, "/example.org/x"},
		{"an act with the link", "POST", "/?token=" + key, nil, 401, ""},
		{"bearer", "GET", "/x?y=z", map[string]string{"Authorization": "Bearer " + key}, 200, `GET /x?y=z auth="" cookies=""`},
		{"bearer, an act", "POST", "/x", map[string]string{"Authorization": "Bearer " + key}, 200, "POST /x"},
		{"a cookie, and the program's own", "GET", "/", map[string]string{"Cookie": "own=1; muster_key_1=of-another; " + cookie + key}, 200, `auth="" cookies="own=1"`},
		{"a cookie, and the program's password", "GET", "/", map[string]string{"Cookie": cookie + key, "Authorization": "Basic YTpi"}, 200, `auth="Basic YTpi"`},
		{"the link again", "GET", "/?token=" + key, map[string]string{"Cookie": cookie + key}, 303, "/"},
		{"another's JSON cookie", "GET", "/a%2Fb?x=1;2", map[string]string{"Cookie": `j={"a":"b,c"}; ` + cookie + key}, 200, `GET /a%2Fb?x=1;2 auth="" cookies="j={\"a\":\"b,c\"}"`},
		{"its own act", "POST", "/x", map[string]string{"Cookie": cookie + key, "Origin": at}, 200, "POST /x"},
		{"its own act, by TLS", "POST", "/x", map[string]string{"Cookie": cookie + key, "Origin": "https" + strings.TrimPrefix(at, "http")}, 200, "POST /x"},
		{"an act of no browser", "DELETE", "/x", map[string]string{"Cookie": cookie + key}, 200, "DELETE /x"},
		{"an act of another port's page", "POST", "/x", map[string]string{"Cookie": cookie + key, "Origin": "http://127.0.0.1:1"}, 403, `origin "http://127.0.0.1:1": only this page itself`},
		{"an act of another page, with a parameter", "PUT", "/x?token=own", map[string]string{"Cookie": cookie + key, "Origin": "http://evil.test"}, 403, "only this page itself"},
		{"an act of a frame's", "POST", "/x", map[string]string{"Cookie": cookie + key, "Origin": "null"}, 403, `origin "null": only this page itself`},
		{"a stranger's act of another page", "POST", "/x", map[string]string{"Origin": "http://evil.test"}, 401, "asks for its key"},
		{"a look of another page", "GET", "/x", map[string]string{"Cookie": cookie + key, "Origin": "http://evil.test"}, 200, "GET /x"},
		{"a question of another page", "OPTIONS", "/x", map[string]string{"Cookie": cookie + key, "Origin": "http://evil.test"}, 200, "OPTIONS /x"},
		{"the key behind the program's own", "GET", "/x?token=own&token=" + key + "&a=b", map[string]string{"Cookie": cookie + key}, 200, "GET /x?a=b "},
		{"the program's own alone", "GET", "/x?token=own&a=b", map[string]string{"Cookie": cookie + key}, 200, "GET /x?token=own&a=b "},
		{"a password", "GET", "/", map[string]string{"Authorization": "Basic " + basic("any", key)}, 200, `auth=""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, at+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range tt.head {
				r.Header.Set(name, value)
			}
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			got := string(text)
			if tt.code == http.StatusSeeOther {
				got = answer.Header.Get("Location")
				if c := answer.Cookies(); len(c) != 1 || c[0].Value != key || !c[0].HttpOnly {
					t.Errorf("cookies %v, want the key's", c)
				}
			}
			if answer.StatusCode != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d, %q, want %d, %q", answer.StatusCode, got, tt.code, tt.want)
			}
			if strings.Contains(got, key) {
				t.Errorf("the key is in %q", got)
			}
		})
	}
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	_, word, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return word
}

// Strangers who send the beginning of a body keep nobody from the page.
func TestGateIsNotShut(t *testing.T) {
	at, _ := behind(t)
	for range 2 * mostConnections {
		conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("got %s", answer.Status)
	}
}

// A connection that is upgraded goes both ways; another page gets none.
func TestGateUpgrades(t *testing.T) {
	at, _ := behind(t)
	for origin, code := range map[string]int{"": 101, "http://x": 101, "http://x:1": 403, "http://evil.test": 403, "null": 403} {
		t.Run(origin, func(t *testing.T) { upgrades(t, at, origin, code) })
	}
}

func upgrades(t *testing.T, at, origin string, code int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\nAuthorization: Bearer %s\r\n", key)
	if origin != "" {
		fmt.Fprintf(conn, "Origin: %s\r\n", origin)
	}
	fmt.Fprint(conn, "\r\n")
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != code {
		t.Fatalf("%v, %v, want %d", answer, err, code)
	}
	defer answer.Body.Close()
	if code != http.StatusSwitchingProtocols {
		return
	}
	fmt.Fprintln(conn, "hello")
	if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestKey(t *testing.T) {
	one, err := Key("t", "d1", "worker-0", "board")
	if err != nil || len(one) != 2*keySize {
		t.Errorf("got %q, %v", one, err)
	}
	for _, other := range [][4]string{{"u", "d1", "worker-0", "board"}, {"t", "d2", "worker-0", "board"}, {"t", "d1", "worker-1", "board"}, {"t", "d1", "worker-0", "b"}} {
		if got, err := Key(other[0], other[1], other[2], other[3]); err != nil || got == one {
			t.Errorf("%q: got %q, %v, want another", other, got, err)
		}
	}
	if _, err := Key("", "d1", "worker-0", "board"); err == nil {
		t.Error("no token: got a key")
	}
}

// Keys stand in those URLs alone that lead to a side process behind one.
func TestShown(t *testing.T) {
	key, err := Key("t", "d1", "worker-0", "board")
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{"side.board": 7001, "side.board.inner": 7002, "side.open": 7003, "global.worker.port": 7004}
	exports := map[string]string{
		"worker.board": "http://h:7001", "worker.run": "http://h:7001/a?b=c#d", "worker.open": "http://h:7003/", "worker.host_port": "h:7001",
		"worker.inner": "http://h:7002", "worker.other": "http://other.example:7001/", "worker.loopback": "http://127.0.0.1:7001/",
		"worker.capital": "http://H:7001/",
	}
	want := map[string]string{
		"worker.board": "http://h:7001/?token=" + key, "worker.run": "http://h:7001/a?b=c&token=" + key + "#d", "worker.open": "http://h:7003/",
		"worker.host_port": "h:7001", "worker.inner": "http://h:7002", "worker.other": "http://other.example:7001/",
		"worker.loopback": "http://127.0.0.1:7001/", "worker.capital": "http://H:7001/?token=" + key,
	}
	at := status.Location{Host: "h", Ports: ports, Exports: exports}
	if diff := cmp.Diff(Shown("t", "d1", "worker-0", at), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(Shown("", "d1", "worker-0", at), exports); diff != "" {
		t.Errorf("without a token (-got +want):\n%s", diff)
	}
}

// A key goes to the host of its instance alone, however that is written.
func TestAsks(t *testing.T) {
	for _, tt := range []struct {
		host, at string
		asks     bool
	}{
		{"h1", "http://h1:7001", true},
		{"h1", "http://H1:7001", true},
		{"h1", "http://h2:7001", false},
		{"h1", "http://h1.example:7001", false},
		{"h1", "http://localhost:7001", false},
		{"h1", "https://h1:7001", false},
		{"h1", "http://h1@other.example:7001", false},
		{"", "http://:7001", false},
		{"10.0.0.1", "http://10.0.0.1:7001", true},
		{"10.0.0.1", "http://[::ffff:10.0.0.1]:7001", true},
		{"10.0.0.1", "http://127.0.0.1:7001", false},
		{"127.0.0.1", "http://localhost:7001", true},
		{"127.0.0.1", "http://127.0.0.1:7001", true},
		{"127.0.0.1", "http://127.0.0.2:7001", false},
		{"localhost", "http://127.0.0.1:7001", true},
		{"fd00::1", "http://[fd00:0::1]:7001/", true},
		{"fd00::1", "http://[fd00::2]:7001/", false},
	} {
		of := status.Location{Host: tt.host, Ports: map[string]int{"side.board": 7001, "side.board.inner": 7002}}
		if got := Asks(of, tt.at); (got == "board") != tt.asks {
			t.Errorf("%s at %q: got %q, want a key %t", tt.at, tt.host, got, tt.asks)
		}
	}
}
