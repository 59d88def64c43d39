package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

const (
	pictures = "doc/pictures"
	drawn    = "scripts/pictures"
)

// TestPicturesAreCurrent draws all pictures and compares them with the committed ones.
func TestPicturesAreCurrent(t *testing.T) {
	python(t)
	dir := t.TempDir()
	if output, code := command(t, checkout, nil, drawn+"/draw", dir); code != 0 {
		t.Fatalf("draw: exit code %d\n%s", code, output)
	}
	want, have := svgs(t, dir), svgs(t, filepath.Join(checkout, pictures))
	if len(want) < 5 || !slices.Equal(want, have) {
		t.Fatalf("%s has %v, and %s draws %v", pictures, have, drawn, want)
	}
	for _, name := range want {
		fresh, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if read(t, filepath.Join(pictures, name)) != string(fresh) {
			t.Errorf("%s/%s is not what `make pictures` draws", pictures, name)
		}
	}
}

// svgs are the names of the pictures in a folder.
func svgs(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

// TestOutagePictureHasTheDefaultTimes compares the times that the picture of an outage names with the registry's.
func TestOutagePictureHasTheDefaultTimes(t *testing.T) {
	d := registry.DefaultTimes()
	want := map[string]time.Duration{
		"renew": d.Renew, "expired": 2 * d.TTL, "silent": d.Silent(), "fence": d.Fence(),
		"asked": d.Fence() + registry.EvidenceValid, "gone": d.Gone(), "lost": d.Lost, "outage": d.Outage(),
		"mass": d.LostMass, "grace": registry.FenceGrace,
	}
	got := map[string]time.Duration{}
	for _, m := range regexp.MustCompile(`(?m)^let (\w+) \| (\S+) (s|min)$`).FindAllStringSubmatch(read(t, drawn+"/outage.txt"), -1) {
		value, err := time.ParseDuration(m[2] + m[3][:1])
		if err != nil {
			t.Fatal(err)
		}
		got[m[1]] = value
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s/outage.txt: got %v, want %v", drawn, got, want)
	}
}

// TestFoldersPictureIsTrue looks for each path of the picture's work folder and state folder while an app runs, and for
// those of the log folder after its end.
func TestFoldersPictureIsTrue(t *testing.T) {
	d := newDesk(t)
	d.smallest()
	defer d.types("bin/muster stop d1")
	if output, code := d.types("bin/muster run hello --app-id d1 --work-dir w --set muster.command='sleep 300' --detach"); code != 0 {
		t.Fatalf("run: exit code %d\n%s", code, output)
	}
	folders := listed(read(t, drawn+"/folders.txt"))
	if len(folders["work"]) < 18 || len(folders["state"]) < 5 {
		t.Fatalf("found only %v", folders)
	}
	present(t, d, ".state", folders["state"])
	if output, code := d.types("bin/muster stop d1"); code != 0 {
		t.Fatalf("stop: exit code %d\n%s", code, output)
	}
	present(t, d, "w", folders["work"])
}

func present(t *testing.T, d desk, root string, paths []string) {
	t.Helper()
	for _, p := range paths {
		p = filepath.Join(root, strings.ReplaceAll(p, "APP", "d1"))
		if output, code := d.types("test -e " + p); code != 0 {
			t.Errorf("%s/folders.txt: there is no %s %s", drawn, p, output)
		}
	}
}

// listed are the paths that each frame of a picture of folders names. A text further to the right than the frame's first
// is below the last folder.
func listed(description string) map[string][]string {
	found := map[string][]string{}
	form := regexp.MustCompile(`^(?:frame (\w+) |text (\d+) \d+ mono.*\| (.*)$)`)
	frame, left, above := "", "", ""
	for line := range strings.Lines(description) {
		m := form.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if m[1] != "" {
			frame, left = m[1], ""
			continue
		}
		if left == "" {
			left = m[2]
		}
		for name := range strings.FieldsSeq(m[3]) {
			if m[2] == left {
				above = name
			} else {
				name = above + name
			}
			found[frame] = append(found[frame], name)
		}
	}
	return found
}
