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
	"slices"
)

// Digest names the definition: sha256, in hex, of the App as JSON with sorted keys. What agents of
// one app may differ in is left out: counts and what is defaulted from them, users, places. Two
// agents with different digests do not run the same job.
func Digest(a App) string {
	a = a.neutral()
	text, err := canonical(a)
	if err != nil {
		panic("appdef: an App is not JSON: " + err.Error()) // maps and slices of scalars only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// neutral drops what the digest must not see. The App itself is not changed.
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

// without is a section less the user and the counts.
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

// canonical is the JSON of a value with the keys of all objects sorted.
func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := decode(text, &tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// decode keeps numbers as they are written: a float64 would change the digest of what is kept.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// Encode is the App as the registry keeps it: canonical JSON, gzip, base64. Counts are not in it
// (App.Counts, App.WithCounts); secrets are references already. The same App gives the same text.
func Encode(a App) (string, error) {
	text, err := canonical(a)
	if err != nil {
		return "", fmt.Errorf("encode app %s: %w", a.Name, err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(text)
	if closing := z.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", fmt.Errorf("encode app %s: %w", a.Name, err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// mostDecoded bounds what a packed definition may unpack to, in bytes.
const mostDecoded = 64 << 20

// Decode reads what Encode wrote. Counts are zero.
func Decode(def string) (App, error) {
	packed, err := base64.StdEncoding.DecodeString(def)
	if err != nil {
		return App{}, fmt.Errorf("decode app: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return App{}, fmt.Errorf("decode app: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostDecoded+1))
	if err != nil {
		return App{}, fmt.Errorf("decode app: %w", err)
	}
	if len(text) > mostDecoded {
		return App{}, fmt.Errorf("decode app: more than %d MiB", mostDecoded>>20)
	}
	var a App
	if err := decode(text, &a); err != nil {
		return App{}, fmt.Errorf("decode app: %w", err)
	}
	return a, nil
}
