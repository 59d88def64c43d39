package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/muster-agent/muster/shim/checkpoint/format"
)

// Manifest describes a checkpoint that is kept in a store. Nothing of it is trusted: parseManifest limits every field,
// and no path in it leads out of a folder.
type Manifest struct {
	Version int    `json:"version"`
	App     string `json:"app"`
	Run     string `json:"run"`
	// when the app came into the registry: a registry that lost its data counts generations anew
	Founded    time.Time `json:"founded"`
	Instance   string    `json:"instance"`
	Inc        string    `json:"incarnation"` // of the agent that stored it
	Generation int       `json:"generation"`
	Attempt    int       `json:"attempt"`
	Step       int64     `json:"step"`
	Saved      time.Time `json:"saved"`
	Framework  string    `json:"framework"`
	// Place is the folder within the checkpoint folder that the files were in: "." or an instance's own.
	Place string `json:"place"`
	// Shared: of a folder of all instances, one of which stores it for all.
	Shared bool `json:"shared"`
	// Path is what a process is told, within Place: a file, a folder, or the prefix of TensorFlow's files.
	Path string `json:"path"`
	// Files are in the order in which they are laid out: the last ones make it whole.
	Files []manifestFile `json:"files"`
}

// manifestFile is one file of a checkpoint in a store.
type manifestFile struct {
	Path   string `json:"path"` // within Place
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Bounds of a manifest.
const (
	manifestVersion = 1
	mostManifest    = 32 << 20 // bytes
	mostPath        = 4096     // bytes
	mostName        = 255      // bytes
)

var (
	// instanceForm is COMPONENT-INDEX; its dots are no folder's.
	instanceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,62}-(0|[1-9][0-9]{0,6})$`)
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$`)
	incForm      = regexp.MustCompile(`^[0-9a-f]{8}[0-9a-f-]{0,56}$`)
	digestForm   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Encode is the manifest as it is stored.
func (m Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// parseManifest reads a manifest. Fields that a newer muster adds are passed over.
func parseManifest(text []byte) (Manifest, error) {
	var m Manifest
	if len(text) > mostManifest {
		return m, fmt.Errorf("manifest: %d bytes, want at most %d", len(text), mostManifest)
	}
	if !utf8.Valid(text) {
		return m, errors.New("manifest: not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&m)
	if err == nil && len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
		err = errors.New("something follows it")
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func (m Manifest) check() error {
	bad := func(field string, got any) error { return fmt.Errorf("%s: got %.100q", field, fmt.Sprint(got)) }
	switch {
	case m.Version != manifestVersion:
		return fmt.Errorf("version: got %d, want %d", m.Version, manifestVersion)
	case !nameForm.MatchString(m.App):
		return bad("app", m.App)
	case !nameForm.MatchString(m.Run):
		return bad("run", m.Run)
	case !instanceForm.MatchString(m.Instance):
		return bad("instance", m.Instance)
	case !incForm.MatchString(m.Inc):
		return bad("incarnation", m.Inc)
	case m.Generation < 0 || m.Generation > 1<<31-1:
		return bad("generation", m.Generation)
	case m.Attempt < 0 || m.Attempt > 1<<31-1:
		return bad("attempt", m.Attempt)
	case m.Step < 0:
		return bad("step", m.Step)
	case len(m.Framework) > mostName || !plain(m.Framework):
		return bad("framework", m.Framework)
	case m.Place != "." && !inner(m.Place):
		return bad("place", m.Place)
	case !inner(m.Path):
		return bad("path", m.Path)
	case len(m.Files) == 0 || len(m.Files) > format.MostFiles:
		return fmt.Errorf("files: got %d, want 1 to %d", len(m.Files), format.MostFiles)
	}
	return m.checkFiles()
}

func (m Manifest) checkFiles() error {
	seen := make(map[string]bool, len(m.Files))
	sum := int64(0)
	for i, f := range m.Files {
		switch {
		case !inner(f.Path):
			return fmt.Errorf("file %d: got path %.100q, want one within the folder", i, f.Path)
		case seen[f.Path]:
			return fmt.Errorf("file %d: %.100q is there twice", i, f.Path)
		case f.Size < 0 || f.Size > 1<<56 || sum > 1<<60:
			return fmt.Errorf("file %d: got size %d", i, f.Size)
		case !digestForm.MatchString(f.SHA256):
			return fmt.Errorf("file %d: got sha256 %.100q", i, f.SHA256)
		}
		seen[f.Path] = true
		sum += f.Size
	}
	for _, f := range m.Files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return fmt.Errorf("files: %.100q is a file and a folder", dir)
			}
		}
	}
	return nil
}

// inner tells a path that stays in its folder, whose names any file system takes. Names that begin with ".muster" are
// ours.
func inner(name string) bool {
	if len(name) > mostPath || name == "." || !fs.ValidPath(name) || !plain(name) || strings.Contains(name, `\`) {
		return false
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > mostName || strings.HasPrefix(element, ownNames) {
			return false
		}
	}
	return true
}

// ownNames begin what we put into a checkpoint folder.
const ownNames = ".muster-"

// plain tells a text without control characters.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Bytes is the size of all its files.
func (m Manifest) Bytes() int64 {
	sum := int64(0)
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// before orders what was stored: by the registry's life, the generation in it, and the step.
func (m Manifest) before(o Manifest) int {
	return cmp.Or(m.Founded.Compare(o.Founded), cmp.Compare(m.Generation, o.Generation), cmp.Compare(m.Step, o.Step),
		cmp.Compare(m.Inc, o.Inc))
}

// standing are the manifests that a gang could resume from by what the store alone shows, oldest first. A later
// generation that stored a step has overtaken all that an earlier one stored of this step or newer: those are of a
// branch that was given up.
func standing(all []Manifest) []Manifest {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, Manifest.before)
	var kept []Manifest
	least := int64(-1) // of all later generations; below 0: none yet
	for end := len(sorted); end > 0; {
		begin := end - 1
		for begin > 0 && sorted[begin-1].Founded.Equal(sorted[end-1].Founded) &&
			sorted[begin-1].Generation == sorted[end-1].Generation {
			begin--
		}
		for _, m := range slices.Backward(sorted[begin:end]) {
			if least < 0 || m.Step < least {
				kept = append(kept, m)
			}
		}
		if first := sorted[begin].Step; least < 0 || first < least {
			least = first
		}
		end = begin
	}
	slices.Reverse(kept)
	return kept
}
