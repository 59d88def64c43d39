package render

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/muster-agent/muster/appdef"
)

// check refuses what no format can hold, or what no agent would take.
func (w *Writer) check() error {
	if err := cmp.Or(appdef.CheckName("app id", w.Options.AppID), appdef.CheckName("run id", w.Options.Run)); err != nil {
		return err
	}
	if w.Options.App == "" || w.Options.Binary == "" {
		return errors.New("want the app that agents load and the path of their binary")
	}
	texts := append([]string{w.Options.App, w.Options.Binary, w.Options.Registry.String(), w.Options.TokenFile, w.Options.TokenSecret, w.Options.Queue, w.Options.Priority, w.Options.Namespace, w.Options.Region, w.Options.Driver, w.Options.User, w.Options.Image}, w.Options.AppFlags...)
	texts = append(append(texts, w.Options.AgentFlags...), w.Options.Datacenters...)
	for i := range w.App.Components {
		texts = append(texts, w.App.Components[i].Limits.NodeLabel, w.App.Components[i].Limits.GPUType, w.App.Components[i].Limits.Image)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s: want UTF-8 without a zero byte: no job file holds anything else", appdef.Quote(text))
		}
	}
	// What is one line or one name in every format; words of the command line may have whatever they like.
	for _, text := range []string{w.Options.Binary, w.Options.TokenFile, w.Options.TokenSecret, w.Options.Queue, w.Options.Priority, w.Options.Namespace, w.Options.Region, w.Options.Driver, w.Options.User, w.Options.Image} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s: want one line", appdef.Quote(text))
		}
	}
	// One name is looked up in the launcher's PATH; a path from a folder is from another one there.
	if b := w.Options.Binary; !Remote(b) && strings.Contains(b, "/") && !strings.HasPrefix(strings.TrimPrefix(b, "file:"), "/") {
		return fmt.Errorf("--binary %s: want its absolute path on the hosts, or a URL", appdef.Quote(b))
	}
	if w.Options.KillWindow < 0 || w.Options.TimeLimit < 0 {
		return errors.New("kill window and time limit: want a positive duration")
	}
	return nil
}

// DNSLabel is a name as RFC 1123 has it: lower case, letters, digits and dashes, a letter or digit at both ends.
func DNSLabel(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
}
