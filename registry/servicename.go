package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// mostLabel is how long one label of a DNS name can be (RFC 1035).
const mostLabel = 63

// DefaultDomain is where Consul answers DNS unless its operator says otherwise.
const DefaultDomain = "consul"

// ServiceName is the Consul service that a component's instances are in: `<app>-<component>` as one label of DNS. Two
// apps may share one where their names differ only in what no label can say; the true names are in the service's meta.
func ServiceName(app, component string) string {
	return label(app+"-"+component, mostLabel)
}

// MemberTag is the tag that one instance alone has in its service: `<component>-<index>`. Where the names are no labels
// as they stand, a part of their digest follows, so that no other app can have the same tag in the same service.
func MemberTag(app string, in Instance) string {
	tail := "-" + strconv.Itoa(in.Index)
	if whole := app + "-" + in.Component; ServiceName(app, in.Component) != whole ||
		label(in.Component, mostLabel-len(tail)) != in.Component {
		sum := sha256.Sum256([]byte(app + "\x00" + in.Component)) // no name has a zero byte
		tail += "-" + hex.EncodeToString(sum[:4])
	}
	return label(in.Component, mostLabel-len(tail)) + tail
}

// MemberName is the name that Consul's DNS answers with the instance's address, wherever it runs: it stays when the
// instance moves. An empty domain is DefaultDomain.
func MemberName(app string, in Instance, domain string) string {
	if domain = strings.Trim(domain, "."); domain == "" {
		domain = DefaultDomain
	}
	return MemberTag(app, in) + "." + ServiceName(app, in.Component) + ".service." + domain
}

// Label is a name as a label of DNS has it: lower case, `-` for all but letters and digits, none of them at the end,
// 63 characters at most.
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
