package appdef

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Digest names the definition: sha256, in hex, of the App as JSON with sorted keys. It leaves out what may differ
// between agents of one app: counts and the values that depend on them, users, places. Two agents with different
// digests do not run the same job.
func Digest(a App) string { return DigestIn(a, math.MaxInt) }

// DigestIn is Digest in the form of a protocol version: it leaves out the fields that came later, which have its
// number in their tag (`proto:"2"`). So a build that knows more fields agrees with one that does not, and what somebody
// writes into a new key still counts, because Config has the keys as written. A field without a tag must be left out of
// the JSON while it is at its default.
func DigestIn(a App, proto int) string {
	tree, err := treeOf(a.neutral())
	if err != nil {
		panic("appdef: an App is not JSON: " + err.Error()) // maps and slices of scalars only
	}
	dropLater(reflect.TypeFor[App](), tree, proto)
	text, err := json.Marshal(tree) // with the keys of all objects sorted
	if err != nil {
		panic("appdef: an App is not JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// neutral drops what the digest leaves out. The App itself is not changed.
func (a App) neutral() App {
	a.Components = slices.Clone(a.Components)
	a.Settings.RestartDefault = ""
	a.Config, a.Resources = without(a.Config), without(a.Resources)
	for i := range a.Components {
		c := &a.Components[i]
		if !c.Settings.Restart.Explicit {
			c.Settings.Restart.Scope = ""
		}
		c.Limits.User = ""
		c.Config, c.Resources = without(c.Config), without(c.Resources)
	}
	return a
}

// without is a section without the user and the counts.
func without(section map[string]string) map[string]string {
	kept := make(map[string]string, len(section))
	for key, value := range section {
		if key != "muster.user" && key != instancesKey {
			kept[key] = value
		}
	}
	return kept
}

const instancesKey = "yarn.component.instances"

// dropLater removes the fields that came after a protocol version from the JSON of a value of that type.
func dropLater(of reflect.Type, tree any, proto int) {
	switch of.Kind() { //nolint:exhaustive // the other kinds have no fields
	case reflect.Pointer:
		dropLater(of.Elem(), tree, proto)
	case reflect.Slice:
		items, _ := tree.([]any)
		for _, item := range items {
			dropLater(of.Elem(), item, proto)
		}
	case reflect.Map:
		members, _ := tree.(map[string]any)
		for _, member := range members {
			dropLater(of.Elem(), member, proto)
		}
	case reflect.Struct:
		members, ok := tree.(map[string]any)
		if !ok { // a type with JSON of its own
			return
		}
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if since, err := strconv.Atoi(f.Tag.Get("proto")); err == nil && since > proto {
				delete(members, name)
			} else if !f.Anonymous {
				dropLater(f.Type, members[name], proto)
			}
		}
	}
}

// treeOf is an App as plain JSON values.
func treeOf(a App) (map[string]any, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, decode(text, &tree)
}

// decode keeps numbers as they are written: a float64 would change the digest.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// mostEncoded is how many bytes a packed definition may have in the registry.
const mostEncoded = 8 << 20

// mostDecoded is how many bytes of JSON a definition may have before it is packed.
const mostDecoded = 64 << 20

// sizeError refuses a definition that is too large for a registry.
type sizeError struct {
	Size, Most int    // bytes
	Of         string // packed, or of JSON
}

func (e *sizeError) Error() string { return e.got() + ", want " + e.want() }

func (e *sizeError) got() string  { return "a definition of " + mebibytes(e.Size) + " " + e.Of }
func (e *sizeError) want() string { return "at most " + mebibytes(e.Most) }

// Encode is the App in the form of the registry: canonical JSON with long texts once (fold), gzip, base64. It leaves
// out the counts (App.Counts, App.WithCounts); secrets are references already. The same App gives the same text. The
// error is a *sizeError for a definition that is too large.
func Encode(a App) (string, error) {
	def, err := pack(a)
	if err != nil {
		return "", fmt.Errorf("encode app %s: %w", a.Name, err)
	}
	return def, nil
}

// Marshal is the App as JSON, in which long texts are once (fold). The error is a *sizeError for a definition that is
// too large.
func Marshal(a App) ([]byte, error) {
	tree, err := treeOf(a)
	if err != nil {
		return nil, err
	}
	whole, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	if n := len(whole); n > mostDecoded {
		return nil, &sizeError{Size: n, Most: mostDecoded, Of: "of JSON"}
	}
	fold(tree)
	return json.Marshal(tree)
}

func pack(a App) (string, error) {
	text, err := Marshal(a)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(text)
	if closing := z.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", err
	}
	if n := base64.StdEncoding.EncodedLen(packed.Len()); n > mostEncoded {
		return "", &sizeError{Size: n, Most: mostEncoded, Of: "packed"}
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// mebibytes prints a size so that one byte more than a whole number shows.
func mebibytes(n int) string {
	if n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + " MiB"
	}
	return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/(1<<20), n)
}

// Decode reads what Encode wrote. Counts are zero.
func Decode(def string) (App, error) {
	a, err := unpack(def)
	if err != nil {
		return App{}, fmt.Errorf("decode app: %w", err)
	}
	return a, nil
}

func unpack(def string) (App, error) {
	packed, err := base64.StdEncoding.DecodeString(def)
	if err != nil {
		return App{}, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return App{}, err
	}
	text, err := io.ReadAll(io.LimitReader(z, mostDecoded+1))
	if err != nil {
		return App{}, err
	}
	return Unmarshal(text)
}

// Unmarshal reads what Marshal has made.
func Unmarshal(text []byte) (App, error) {
	if len(text) > mostDecoded {
		return App{}, fmt.Errorf("more than %s", mebibytes(mostDecoded))
	}
	text, err := unfold(text, mostDecoded)
	if err != nil {
		return App{}, err
	}
	var a App
	return a, decode(text, &a)
}
