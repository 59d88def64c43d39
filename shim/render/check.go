package render

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/muster-agent/muster/appdef"
)

// nameForm is that of app ids, run ids and components.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,62}$`)

// check refuses what no format can hold, or what no agent would take.
func (w *writer) check() error {
	for what, name := range map[string]string{"app id": w.o.AppID, "run id": w.o.Run} {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("%s %s: want up to 63 of A-Z a-z 0-9 . _ ~ -, beginning with a letter or digit", what, appdef.Quote(name))
		}
	}
	if w.o.App == "" || w.o.Binary == "" {
		return errors.New("want the app that agents load and the path of their binary")
	}
	texts := append([]string{w.o.App, w.o.Binary, w.o.Registry, w.o.TokenFile, w.o.TokenSecret, w.o.Queue, w.o.Priority, w.o.Namespace, w.o.Region, w.o.Driver, w.o.User, w.o.Image}, w.o.AppFlags...)
	texts = append(append(texts, w.o.AgentFlags...), w.o.Datacenters...)
	for i := range w.app.Components {
		texts = append(texts, w.app.Components[i].Limits.NodeLabel, w.app.Components[i].Limits.GPUType, w.app.Components[i].Limits.Image)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s: want UTF-8 without a zero byte: no job file holds anything else", appdef.Quote(text))
		}
	}
	// What is one line or one name in every format; words of the command line may have whatever they like.
	for _, text := range []string{w.o.Binary, w.o.TokenFile, w.o.TokenSecret, w.o.Queue, w.o.Priority, w.o.Namespace, w.o.Region, w.o.Driver, w.o.User, w.o.Image} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s: want one line", appdef.Quote(text))
		}
	}
	// One name is looked up in the launcher's PATH; a path from a folder is from another one there.
	if b := w.o.Binary; !remote(b) && strings.Contains(b, "/") && !strings.HasPrefix(strings.TrimPrefix(b, "file:"), "/") {
		return fmt.Errorf("--binary %s: want its absolute path on the hosts, or a URL", appdef.Quote(b))
	}
	if w.o.KillWindow < 0 || w.o.TimeLimit < 0 {
		return errors.New("kill window and time limit: want a positive duration")
	}
	return nil
}
