package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Auth holds logins of registries. It prints without its secrets.
type Auth struct {
	logins map[string]authn.AuthConfig // by host[:port]
}

// Registries are the hosts that there is a login for, sorted.
func (a Auth) Registries() []string { return slices.Sorted(maps.Keys(a.logins)) }

func (a Auth) String() string { return "logins for " + strings.Join(a.Registries(), ", ") }

// GoString is String: %#v shows no secret either.
func (a Auth) GoString() string { return a.String() }

// Resolve gives the login for a registry; anonymous when there is none. It makes Auth an authn.Keychain.
func (a Auth) Resolve(target authn.Resource) (authn.Authenticator, error) {
	login, ok := a.logins[target.RegistryStr()]
	if !ok {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(login), nil
}

// maxAuth bounds an auth file, in bytes.
const maxAuth = 1 << 20

// ParseAuth reads a docker config file (its `auths`; credential helpers are programs of a host and are not run for a
// file that a job brings) or PAI's auth file of three lines: registry, user, password.
func ParseAuth(text []byte) (Auth, error) {
	if len(text) > maxAuth {
		return Auth{}, fmt.Errorf("auth file: got %d bytes, want at most %d", len(text), maxAuth)
	}
	trimmed := strings.TrimSpace(string(text))
	if strings.HasPrefix(trimmed, "{") {
		return parseDockerConfig([]byte(trimmed))
	}
	lines := strings.Split(trimmed, "\n")
	if len(lines) != 3 {
		return Auth{}, fmt.Errorf("auth file: got %d lines, want a docker config file (JSON) or three lines: "+
			"registry, user, password", len(lines))
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	login := authn.AuthConfig{Username: lines[1], Password: lines[2]}
	if login.Username == "" || login.Password == "" {
		return Auth{}, errors.New("auth file: got an empty line, want three lines: registry, user, password")
	}
	if unprintable(login.Username, login.Password) {
		return Auth{}, errors.New("auth file: got control characters, want three lines of text: registry, user, " +
			"password")
	}
	host, err := registryHost(lines[0])
	if err != nil {
		return Auth{}, err
	}
	return Auth{logins: map[string]authn.AuthConfig{host: login}}, nil
}

func parseDockerConfig(text []byte) (Auth, error) {
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if json.Unmarshal(text, &file) != nil { // the error's text may quote a secret
		return Auth{}, errors.New("auth file: got JSON that does not have the form of a docker config file")
	}
	a := Auth{logins: map[string]authn.AuthConfig{}}
	for _, key := range slices.Sorted(maps.Keys(file.Auths)) {
		entry := file.Auths[key]
		host, err := registryHost(key)
		if err != nil {
			return Auth{}, err
		}
		login := authn.AuthConfig{
			Username: entry.Username, Password: entry.Password,
			IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken,
		}
		if entry.Auth != "" {
			if login.Username, login.Password, err = decodeLogin(entry.Auth); err != nil {
				return Auth{}, fmt.Errorf("auth file: %s: %w", key, err)
			}
		}
		if unprintable(login.Username, login.Password, login.IdentityToken, login.RegistryToken) {
			return Auth{}, fmt.Errorf("auth file: %s: got control characters in a login", key)
		}
		if login != (authn.AuthConfig{}) {
			a.logins[host] = login
		}
	}
	if len(a.logins) == 0 {
		return Auth{}, errors.New("auth file: got no login in `auths`; a login that a credential helper keeps is " +
			"only used from the user's own docker config file")
	}
	return a, nil
}

// decodeLogin reads docker's base64 of user:password.
func decodeLogin(text string) (user, password string, err error) {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", errors.New("auth: got something else than base64")
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(plain), "\x00"), ":")
	if !ok || user == "" {
		return "", "", errors.New("auth: got no user:password in base64")
	}
	return user, password, nil
}

// registryHost turns what people write for a registry (an address with scheme and path, docker.io) into the host that
// requests go to.
func registryHost(text string) (string, error) {
	_, host, ok := strings.Cut(text, "://")
	if !ok {
		host = text
	}
	host, _, _ = strings.Cut(host, "/")
	switch host {
	case "registry-1.docker.io":
		host = name.DefaultRegistry
	case "":
		return "", errors.New("auth file: got no registry, want its host")
	}
	r, err := name.NewRegistry(host) // knows that docker.io is Docker Hub's endpoint
	if err != nil || unprintable(host) {
		return "", fmt.Errorf("auth file: registry: got %q, want a host with an optional port", host)
	}
	return r.RegistryStr(), nil
}

// unprintable characters in a login would reach an HTTP header. Each text is looked at alone: the bytes at the end of
// one and the beginning of the next may form a character that is in neither.
func unprintable(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) })
}
