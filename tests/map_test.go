package tests

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// alternatives is a{b,c} of a name in the map.
var alternatives = regexp.MustCompile(`^(.*)\{(.*)\}$`)

// mapRooms are the rooms that the first column of the map in CONTRIBUTING.md names.
func mapRooms(text string) map[string]bool {
	rooms := map[string]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, name := range strings.Split(cells[1], "`") {
			m := alternatives.FindStringSubmatch(name)
			switch {
			case i%2 == 0: // between two names
			case m == nil:
				rooms[name] = true
			default:
				for one := range strings.SplitSeq(m[2], ",") {
					rooms[m[1]+one] = true
				}
			}
		}
	}
	return rooms
}

// A newcomer finds every room in the map, and every room of the map in the tree. Helpers of
// tests, and the client that a launcher's row describes, need no row.
func TestMapNamesEveryRoom(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n## The map\n")
	table, _, found := strings.Cut(after, "\n### ")
	if !found {
		t.Fatal("CONTRIBUTING.md has no map with a chapter behind it")
	}
	named := mapRooms(table)
	own := regexp.MustCompile(`^(shim/launcher/(k8s|nomad|slurm|systemd|yarn)/client|shim/launcher/job/jobtest|` +
		`registry/embedded/embeddedtest|registry/registrytest/http|cmd/internal/console/consoletest)$`)
	for _, p := range listPackages(t) {
		room := rel(p.ImportPath)
		if outside := strings.HasPrefix(room, "tests") || strings.HasPrefix(room, "scripts"); outside || own.MatchString(room) {
			continue
		}
		if !named[room] {
			t.Errorf("CONTRIBUTING.md: the map has no row for %s", room)
		}
	}
	for room := range named {
		if _, err := os.Stat(path.Join("..", room)); err != nil {
			t.Errorf("CONTRIBUTING.md: the map names %s, which is not there", room)
		}
	}
}
