package render

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// pin separates the path or URL of the binary from the digest of its content, as for an APP.
const pin = "#sha256="

var (
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// inStore is the name of a file in a store of muster submit, which begins with its digest.
	inStore = regexp.MustCompile(`/([0-9a-f]{64})-[^/]+$`)
)

// splitPin takes the digest off --binary.
func (w *Writer) splitPin() error {
	o := &w.Options
	at, digest, pinned := strings.Cut(o.Binary, pin)
	if pinned {
		o.Binary, o.BinarySHA256 = at, strings.ToLower(digest)
	}
	if m := inStore.FindStringSubmatch(o.Binary); m != nil && o.BinarySHA256 == "" {
		o.BinarySHA256 = m[1]
	}
	if (pinned || o.BinarySHA256 != "") && !digestForm.MatchString(o.BinarySHA256) {
		return fmt.Errorf("--binary %s: want 64 hex digits after %s", appdef.Quote(at+pin+digest), pin)
	}
	return nil
}

// FetchedBinary refuses a binary that the launcher fetches without knowing its digest.
func (w *Writer) FetchedBinary() error {
	if Remote(w.Options.Binary) && w.Options.BinarySHA256 == "" {
		return fmt.Errorf("--binary %s: got no digest, so that whoever writes there runs as the agents: append "+
			"%sHEX, which sha256sum prints", appdef.Quote(w.Options.Binary), pin)
	}
	return nil
}

// CheckedCopy are the steps, in the words of a shell, that copy the binary, and what is brought beside it, to a folder
// of the agent's own and check the copies: nobody exchanges them between the check and the start. place makes the
// folder and puts its name into $d. from is where the binary lies, in the words of a shell, and digest its sha256;
// helper is where muster-gpu lies. When a step fails, $why says what is wrong.
func (w *Writer) CheckedCopy(place, from, digest, helper string) []string {
	steps := append([]string{`why="cannot make a folder for its copy, as said above"; ` + place},
		checkedProgram("", BinaryName, from, digest)...)
	if w.Options.Helper == "" {
		return steps
	}
	return append(steps, checkedProgram(HelperName+": ", HelperName, helper, w.Options.HelperSHA256)...)
}

// checkedProgram copies one program to $d and checks the copy. about begins what is said of it.
func checkedProgram(about, name, from, digest string) []string {
	at := `"$d/` + name + `"`
	return []string{
		`why="` + about + `cannot be copied to $d; let the agent read it, or free space there"`,
		`cp ` + from + ` ` + at + ` && chmod 500 ` + at,
		`why="` + about + `cannot be checked, as this host has no sha256sum; install coreutils"`,
		`command -v sha256sum >/dev/null`,
		`why="` + about + `refused: its sha256 is not ` + digest + `, as submitted; submit the job again"`,
		`echo "` + digest + `  $d/` + name + `" | sha256sum -c - >/dev/null`,
		`why="` + about + `cannot be run in $d, which is mounted noexec; mount it without (Slurm: or set TMPDIR)"`,
		`[ -x ` + at + ` ]`,
	}
}

// LocalHelper is where muster-gpu lies, as a word of a shell: its path, or where the launcher has put it in a folder.
func (w *Writer) LocalHelper(folder string) string {
	if Remote(w.Options.Helper) {
		return ShellWord(path.Join(folder, HelperName))
	}
	return ShellWord(strings.TrimPrefix(w.Options.Helper, "file://"))
}

// Start are the words that start the binary at a path: itself, or what checks its digest first. folder is where the
// copy goes, in the words of a shell.
func (w *Writer) Start(binary, folder string) []string {
	return w.StartIn(binary, `d=`+folder+` && rm -rf "$d" && mkdir -m 700 "$d"`)
}

// StartIn is Start with what makes the folder of the copy, whose name it puts into $d.
func (w *Writer) StartIn(binary, place string) []string {
	if w.Options.BinarySHA256 == "" {
		return []string{binary}
	}
	steps := strings.Join(w.CheckedCopy(place, `"$2"`, "$1", w.LocalHelper(path.Dir(binary))), " && ")
	text := steps + ` || { echo "muster: $2: $why" >&2; exit 77; }; shift 2; exec "$d/muster" "$@"`
	return []string{"/bin/sh", "-c", text, "muster", w.Options.BinarySHA256, binary}
}
