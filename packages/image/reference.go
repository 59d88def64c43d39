package image

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// reference is where an image is: in a registry or in a layout on disk.
type reference struct {
	text string         // as the user wrote it
	name name.Reference // nil for a layout
	dir  string         // of a layout
	tag  string         // of a layout; empty: the only image, or the one for the platform
}

const layoutPrefix = "oci:"

var layoutTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// parseReference reads what muster.image says. A registry's host among insecure may be spoken to by plain http; open
// opens the folder of a layout.
func parseReference(text string, insecure []string, open func(string) (Folder, error)) (reference, error) {
	if rest, ok := strings.CutPrefix(text, layoutPrefix); ok {
		return parseLayout(text, rest, open)
	}
	var options []name.Option
	if host, _, ok := strings.Cut(text, "/"); ok && listed(host, insecure) {
		options = append(options, name.Insecure)
	}
	n, err := name.ParseReference(text, options...)
	if err != nil {
		//nolint:errorlint // only the text of the library's error is of use
		return reference{text: text}, fmt.Errorf("%w: %v", ErrReference, err)
	}
	return reference{text: text, name: n}, nil
}

// parseLayout: a folder's name may hold a colon, so what exists decides.
func parseLayout(text, rest string, open func(string) (Folder, error)) (reference, error) {
	if rest == "" || strings.ContainsRune(rest, 0) {
		return reference{text: text}, fmt.Errorf("%w: got no folder", ErrReference)
	}
	if folder, err := open(rest); err == nil {
		return reference{text: text, dir: rest}, folder.Close()
	}
	if i := strings.LastIndexByte(rest, ':'); i > 0 && layoutTag.MatchString(rest[i+1:]) {
		return reference{text: text, dir: rest[:i], tag: rest[i+1:]}, nil
	}
	return reference{text: text, dir: rest}, nil
}

// host is the registry, or the layout's folder.
func (r reference) host() string {
	if r.name == nil {
		return r.dir
	}
	return r.name.Context().RegistryStr()
}

// digest is what the reference itself promises; empty when it names a tag.
func (r reference) digest() string {
	if d, ok := r.name.(name.Digest); ok {
		return d.DigestStr()
	}
	return ""
}

func listed(host string, hosts []string) bool {
	for _, h := range hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}
