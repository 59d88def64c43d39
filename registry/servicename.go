package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// mostLabel is how long one label of a DNS name can be (RFC 1035).
const mostLabel = 63

// DefaultDomain is the domain of Consul's DNS unless its operator sets another.
const DefaultDomain = "consul"

// ServiceName is the Consul service of a component's instances: `<app>-<component>` as one label of DNS. Two apps share
// one if their names differ only in characters that no label can have; the service's meta has the true names.
func ServiceName(app, component string) string {
	return label(app+"-"+component, mostLabel)
}

// MemberTag is the tag that only one instance has in its service: `<component>-<index>`. If the names are not valid
// labels, a part of their digest follows, so that no other app can have the same tag in the same service.
func MemberTag(app string, in Instance) string {
	tail := "-" + strconv.Itoa(in.Index)
	if whole := app + "-" + in.Component; ServiceName(app, in.Component) != whole ||
		label(in.Component, mostLabel-len(tail)) != in.Component {
		sum := sha256.Sum256([]byte(app + "\x00" + in.Component)) // no name has a zero byte
		tail += "-" + hex.EncodeToString(sum[:4])
	}
	return label(in.Component, mostLabel-len(tail)) + tail
}

// MemberName is the name for which Consul's DNS returns the instance's address. It stays when the instance moves to
// another host. An empty domain is DefaultDomain.
func MemberName(app string, in Instance, domain string) string {
	if domain = strings.Trim(domain, "."); domain == "" {
		domain = DefaultDomain
	}
	return MemberTag(app, in) + "." + ServiceName(app, in.Component) + ".service." + domain
}

// Label turns a name into a label of DNS: lower case, `-` for all but letters and digits, none at the ends, at most 63
// characters.
func Label(name string) string { return label(name, mostLabel) }

func label(name string, most int) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return strings.Trim(string(b[:min(len(b), most)]), "-")
}
