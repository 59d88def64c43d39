package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muster-agent/muster/appdef"
)

// check refuses what no format can hold, or what no agent would take.
func (w *Writer) check() error {
	o := &w.Options
	if err := cmp.Or(appdef.CheckName("app id", o.AppID), appdef.CheckName("run id", o.Run)); err != nil {
		return err
	}
	if o.App == "" || o.Binary == "" {
		return errors.New("want the app that agents load and the path of their binary")
	}
	// What is one line or one name in every format; words of the command line may have whatever they like.
	oneLine := []string{
		o.Binary, o.TokenFile, o.TokenSecret, o.Queue, o.Priority, o.Namespace, o.Region, o.Driver, o.User, o.Image,
	}
	texts := slices.Concat([]string{o.App, o.Registry.String()}, oneLine, o.AppFlags)
	texts = append(append(texts, o.AgentFlags...), o.Datacenters...)
	for i := range w.App.Components {
		l := &w.App.Components[i].Limits
		texts = append(texts, l.NodeLabel, l.GPUType, l.Image)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s: want UTF-8 without a zero byte: no job file holds anything else", appdef.Quote(text))
		}
	}
	for _, text := range oneLine {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s: want one line", appdef.Quote(text))
		}
	}
	// One name is looked up in the launcher's PATH; a path from a folder is from another one there.
	absolute := strings.HasPrefix(strings.TrimPrefix(o.Binary, "file:"), "/")
	if b := o.Binary; !Remote(b) && strings.Contains(b, "/") && !absolute {
		return fmt.Errorf("--binary %s: want its absolute path on the hosts, or a URL", appdef.Quote(b))
	}
	if o.KillWindow < 0 || o.TimeLimit < 0 {
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
