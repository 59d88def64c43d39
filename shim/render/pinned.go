package render

import (
	"fmt"
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
	path, digest, pinned := strings.Cut(o.Binary, pin)
	if pinned {
		o.Binary, o.BinarySHA256 = path, strings.ToLower(digest)
	}
	if m := inStore.FindStringSubmatch(o.Binary); m != nil && o.BinarySHA256 == "" {
		o.BinarySHA256 = m[1]
	}
	if (pinned || o.BinarySHA256 != "") && !digestForm.MatchString(o.BinarySHA256) {
		return fmt.Errorf("--binary %s: want 64 hex digits after %s", appdef.Quote(path+pin+digest), pin)
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

// verified is the shell text that starts a binary whose digest must be $1. It checks and starts a copy in a folder of
// the agent's own, so that nobody exchanges the binary between the check and the start. %s makes that folder, $d.
const verified = `%s && cp "$2" "$d/muster" && chmod 500 "$d/muster" && ` +
	`echo "$1  $d/muster" | sha256sum -c - >/dev/null && b=$d/muster || ` +
	`{ echo "muster: $2: refused: its sha256 is not $1, as submitted; submit the job again" >&2; exit 77; }; ` +
	`shift 2; exec "$b" "$@"`

// Start are the words that start the binary at a path: itself, or what checks its digest first. folder is where the
// copy goes, in the words of a shell.
func (w *Writer) Start(binary, folder string) []string {
	if w.Options.BinarySHA256 == "" {
		return []string{binary}
	}
	place := `d=` + folder + ` && rm -rf "$d" && mkdir -m 700 "$d"`
	return []string{"/bin/sh", "-c", fmt.Sprintf(verified, place), "muster", w.Options.BinarySHA256, binary}
}
