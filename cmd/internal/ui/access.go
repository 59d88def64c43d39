package ui

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Access says who may look and act, beside who opens a one-time link.
type Access struct {
	Tokens TokenFile
	// Header is that in which a proxy names the user whom it has let in; "": there is no such proxy.
	Header string
	// Proxies are the addresses whose word counts. A server that listens at a unix socket believes whoever reaches it.
	Proxies []netip.Prefix
	// Actors are those of the proxy's users who may act; `*` is all of them.
	Actors []string
}

// Check reads what can be wrong with it before the first request.
func (a *Access) Check() error {
	if a.Tokens.Path == "" {
		return nil
	}
	_, err := readTokens(a.Tokens.Path)
	return err
}

func (a *Access) tokenOf(token string) (caller, bool) {
	if a.Tokens.Path == "" || token == "" {
		return caller{}, false
	}
	return a.Tokens.find(token)
}

// proxied is the user whom a proxy names.
func (a *Access) proxied(r *http.Request) (caller, bool) {
	if a.Header == "" {
		return caller{}, false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil { // else it has come by the unix socket
		address := from.Addr().Unmap()
		if !slices.ContainsFunc(a.Proxies, func(p netip.Prefix) bool { return p.Contains(address) }) {
			return caller{}, false
		}
	}
	names := r.Header.Values(a.Header)
	if len(names) != 1 || !userName(names[0]) {
		return caller{}, false
	}
	act := slices.Contains(a.Actors, names[0]) || slices.Contains(a.Actors, "*")
	return caller{Name: names[0], Act: act}, true
}

// userName tells whether a text can be a user's: it is written into causes and logs.
func userName(text string) bool {
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	return text != "" && len(text) <= 256 && !strings.ContainsFunc(text, strange)
}

// TokenFile has a line for each token: NAME, read or act, and the token's SHA-256 in hex. It is read again when it has
// changed.
type TokenFile struct {
	Path string

	log *slog.Logger // is told when it lets nobody in; nil: nobody is

	mu     sync.Mutex
	read   version // that of tokens
	tokens []token
	told   string // why it lets nobody in, as the log has it; "": it was read
}

// version is how a file is at a time: its content, its mode or its owner cannot change without it.
type version struct {
	size, inode       uint64
	modified, changed syscall.Timespec
}

type token struct {
	caller
	sum [sha256.Size]byte
}

func (f *TokenFile) find(secret string) (caller, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew()
	sum := sha256.Sum256([]byte(secret))
	for _, one := range f.tokens {
		if subtle.ConstantTimeCompare(sum[:], one.sum[:]) == 1 {
			return one.caller, true
		}
	}
	return caller{}, false
}

// renew reads the file if it has changed. One that cannot be read lets nobody in, and the log is told so once.
func (f *TokenFile) renew() {
	var st syscall.Stat_t
	if err := syscall.Stat(f.Path, &st); err != nil {
		f.refuse(version{}, &fs.PathError{Op: "stat", Path: f.Path, Err: err})
		return
	}
	now := version{uint64(st.Size), st.Ino, st.Mtim, st.Ctim}
	if now == f.read {
		return
	}
	tokens, err := readTokens(f.Path)
	if err != nil {
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			now = version{} // it may be readable the next time, unchanged
		}
		f.refuse(now, err)
		return
	}
	if f.told != "" && f.log != nil {
		f.log.Info("tokens read again", "file", f.Path, "tokens", len(tokens))
	}
	f.read, f.tokens, f.told = now, tokens, ""
}

func (f *TokenFile) refuse(now version, why error) {
	f.read, f.tokens = now, nil
	if f.told != why.Error() && f.log != nil {
		f.log.Error("tokens let nobody in until their file is mended", "err", why)
	}
	f.told = why.Error()
}

func readTokens(path string) ([]token, error) {
	at, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if at.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s: its mode %#o lets others write it, who could let themselves in; want 0644 or less",
			path, at.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseTokens(path, text)
}

func parseTokens(path string, text []byte) ([]token, error) {
	var all []token
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		var one token
		size := 0
		if len(words) == 3 && len(words[2]) == hex.EncodedLen(sha256.Size) {
			size, _ = hex.Decode(one.sum[:], []byte(words[2])) // a short one is refused below
		}
		if size != sha256.Size || words[1] != "read" && words[1] != "act" || !userName(words[0]) {
			return nil, fmt.Errorf("%s:%d: want NAME, read or act, and a SHA-256 in hex, as muster ui token prints it",
				path, n)
		}
		one.Name, one.Act = words[0], words[1] == "act"
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// NewToken makes a token, and its line for the file.
func NewToken(name string, act bool) (secret, line string, err error) {
	if !userName(name) {
		return "", "", fmt.Errorf("name %q: want letters, digits and signs without spaces, at most 256", name)
	}
	right := "read"
	if act {
		right = "act"
	}
	secret = rand.Text()
	sum := sha256.Sum256([]byte(secret))
	return secret, name + " " + right + " " + hex.EncodeToString(sum[:]), nil
}
