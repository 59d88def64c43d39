// Package tinygang is an app for tests of launchers: two components of shell programs without a framework, gone in a
// second or when a file says so. Enters a folder and the test's wishes; leaves an app package there, and later what its
// processes wrote.
package tinygang

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Components of every tiny gang: one ps, and as many workers as are wanted.
const (
	PS     = "ps"
	Worker = "worker"
)

// Program is what every instance runs, with sh -c. It notes its start in the file starts of the gang's folder, as one
// line of INSTANCE GENERATION ATTEMPT HOST PORT CWD; a ps then waits for its end, a worker until the file `go` is there
// and the ps has begun, which the job's end would else overtake, and ends with what the file `code` says, 0 without it.
const Program = `me="$MUSTER_INSTANCE $MUSTER_GENERATION $MUSTER_ATTEMPT"
echo "$me $MUSTER_HOST $MUSTER_PORT $PWD" >>"$TINYGANG/starts"
case $MUSTER_COMPONENT in ps) exec sleep 1000 ;; esac
until [ -e "$TINYGANG/go" ] && grep -q "^ps-" "$TINYGANG/starts"; do sleep 0.1; done
exit "$(cat "$TINYGANG/code" 2>/dev/null || echo 0)"`

// Gang is one.
type Gang struct {
	// App is the folder of its package.
	App string
	// Dir is where its processes write; everybody may.
	Dir string
}

// Write lays out a gang of one ps and so many workers under dir, with settings KEY=VALUE of appConfig's global part.
func Write(t testing.TB, dir string, workers int, settings map[string]string) Gang {
	t.Helper()
	g := Gang{App: filepath.Join(dir, "app"), Dir: filepath.Join(dir, "gang")}
	for _, folder := range []string{g.App, g.Dir} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(g.Dir, 0o777); err != nil { // agents may be of another user
		t.Fatal(err)
	}
	global := map[string]any{
		"muster.framework": "none", "muster.command": Program, "muster.env.TINYGANG": g.Dir,
		"muster.restart.backoff": "0.1",
	}
	for key, value := range settings {
		global[key] = value
	}
	resources, components, groups := map[string]any{}, []any{}, []any{}
	for i, c := range []struct {
		name  string
		count int
	}{{PS, 1}, {Worker, workers}} {
		resources[c.name] = map[string]any{
			"yarn.role.priority": strconv.Itoa(i + 1), "yarn.component.instances": strconv.Itoa(c.count),
			"yarn.memory": "64", "yarn.vcores": "1",
		}
		global["site.global."+c.name+".port"] = "${" + c.name + ".ALLOCATED_PORT}{PER_CONTAINER}"
		components = append(components, map[string]any{"name": c.name, "category": "SLAVE", "compExports": c.name +
			"-address"})
		groups = append(groups, map[string]any{"name": c.name, "exports": []any{
			map[string]any{"name": "address", "value": "${" + c.name + "_HOST}:${site.global." + c.name + ".port}"},
		}})
	}
	const schema = "http://example.org/specification/v2.0.0"
	for name, content := range map[string]any{
		"metainfo.json": map[string]any{"schemaVersion": "2.1", "application": map[string]any{
			"name": "tinygang", "version": "1", "exportGroups": groups, "components": components,
		}},
		"appConfig.default.json": map[string]any{
			"schema": schema, "global": maps.Clone(global),
			"components": map[string]any{PS: map[string]any{}, Worker: map[string]any{}},
		},
		"resources.default.json": map[string]any{"schema": schema, "global": map[string]any{}, "components": resources},
	} {
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.App, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Go lets the workers end with a code.
func (g Gang) Go(t testing.TB, code int) {
	t.Helper()
	for _, f := range []struct{ name, content string }{{"code", strconv.Itoa(code)}, {"go", ""}} {
		if err := os.WriteFile(filepath.Join(g.Dir, f.name), []byte(f.content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Start is one start of an instance's process.
type Start struct {
	Instance            string
	Generation, Attempt int
	Host, Port, Cwd     string
}

// Starts are all starts so far, in their order.
func (g Gang) Starts(t testing.TB) []Start {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Dir, "starts"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var all []Start
	for line := range strings.Lines(string(text)) {
		var s Start
		if _, err := fmt.Sscan(line, &s.Instance, &s.Generation, &s.Attempt, &s.Host, &s.Port, &s.Cwd); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}
