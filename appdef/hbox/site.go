package hbox

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Site are the administrator's defaults: the values of hbox-site.xml, which options and --conf override. The zero Site
// has none.
type Site struct {
	file   string
	values []siteValue // each name once, in its right spelling, in the order of the file
}

type siteValue struct {
	name string
	appdef.Value
}

// ReadSite reads an hbox-site.xml, or XLearning's xlearning-site.xml, by the rules of Hadoop's Configuration. getenv
// gives the client's variables, and Java's user.name and user.home.
func ReadSite(file string, text []byte, getenv func(string) string) (Site, error) {
	s := Site{file: file}
	properties, err := s.properties(text)
	if err != nil {
		return Site{}, err
	}
	final := map[string]bool{}
	for _, p := range properties {
		name := spelt(p.name)
		if final[name] {
			continue // as Hadoop: no later value changes a final one
		}
		final[name] = p.final
		s.values = slices.DeleteFunc(s.values, func(v siteValue) bool { return v.name == name })
		at := place(file+":"+strconv.Itoa(p.line), name)
		at.Line = p.line
		s.values = append(s.values, siteValue{name, appdef.Value{Text: p.value, Place: at}})
	}
	for i := range s.values {
		s.values[i].Text = s.filled(s.values[i].Text, getenv)
	}
	return s, nil
}

type siteProperty struct {
	name, value string
	final       bool
	line        int
}

// properties takes the file apart.
func (s Site) properties(text []byte) ([]siteProperty, error) {
	var all []siteProperty
	d := xml.NewDecoder(bytes.NewReader(text))
	root := false
	for {
		token, err := d.Token()
		line, _ := d.InputPos()
		if errors.Is(err, io.EOF) {
			if !root {
				return nil, s.bad(line, "no element", "<configuration>")
			}
			return all, nil
		}
		if err != nil {
			return nil, s.broken(line, err)
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case !root && start.Name.Local != "configuration":
			return nil, s.bad(line, "<"+start.Name.Local+">", "<configuration>")
		case !root:
			root = true
		case start.Name.Local == "include":
			return nil, s.bad(line, "an include", "the properties themselves")
		case start.Name.Local != "property":
			if err := d.Skip(); err != nil {
				return nil, s.broken(line, err)
			}
		default:
			p, valued, err := property(d, start)
			if err != nil {
				return nil, s.broken(line, err)
			}
			if p.name == "" {
				return nil, s.bad(line, "a property without a name", "<name>NAME</name>")
			}
			if p.line = line; valued {
				all = append(all, p)
			}
		}
	}
}

// property reads one property, in either form of Hadoop's: elements or attributes. Hadoop ignores one without a value.
func property(d *xml.Decoder, start xml.StartElement) (p siteProperty, valued bool, err error) {
	var read struct {
		Name  string  `xml:"name"`
		Value *string `xml:"value"`
		Final string  `xml:"final"`
	}
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "name":
			read.Name = a.Value
		case "value":
			read.Value = &a.Value
		case "final":
			read.Final = a.Value
		}
	}
	if err := d.DecodeElement(&read, &start); err != nil {
		return p, false, err
	}
	p.name, p.final = strings.TrimSpace(read.Name), strings.TrimSpace(read.Final) == "true"
	if read.Value != nil {
		p.value = strings.TrimSpace(*read.Value)
	}
	return p, read.Value != nil, nil
}

func (s Site) broken(line int, err error) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return s.bad(syntax.Line, "XML that ends in an error, "+syntax.Msg, "an XML file of Hadoop's form")
	}
	return s.bad(line, err.Error(), "an XML file of Hadoop's form")
}

func (s Site) bad(line int, got, want string) error {
	return appdef.Problems{appdef.Place{File: s.file, Line: line}.Problem(got, want, "")}
}

var siteVariable = regexp.MustCompile(`\$\{[^}$\s]+\}`)

// mostExpansions and mostText bound how a value is filled in; Hadoop has the first of them.
const (
	mostExpansions = 20
	mostText       = 1 << 20
)

// filled puts values for ${NAME}: of another property, of the user, of a variable with ${env.NAME}. What has none stays
// as it is.
func (s Site) filled(text string, getenv func(string) string) string {
	for range mostExpansions {
		at := siteVariable.FindStringIndex(text)
		if at == nil {
			return text
		}
		found, ok := s.variable(text[at[0]+2:at[1]-1], getenv)
		if !ok || len(text)+len(found) > mostText {
			return text
		}
		text = text[:at[0]] + found + text[at[1]:]
	}
	return text
}

func (s Site) variable(name string, getenv func(string) string) (string, bool) {
	if variable, ok := strings.CutPrefix(name, "env."); ok {
		variable, fallback, _ := strings.Cut(variable, ":-")
		if v := getenv(variable); v != "" {
			return v, true
		}
		return fallback, true
	}
	switch name {
	case "user.name", "user.home":
		return getenv(name), true
	}
	return s.value(spelt(name))
}

func (s Site) value(name string) (string, bool) {
	i := slices.IndexFunc(s.values, func(v siteValue) bool { return v.name == name })
	if i < 0 {
		return "", false
	}
	return s.values[i].Text, true
}

// defaults gives the command line what the site says and no option or --conf does. HBox's client writes its own
// defaults over the site's; its manual has the site's hold, as here.
func (l *line) defaults(site Site) {
	var unknown []string
	known := confNames()
	for _, v := range site.values {
		component, key, of := strings.Cut(v.name, ":muster.")
		switch {
		case v.name == hboxTypeKey:
			l.bad(v.Place, appdef.Quote(v.Text), "--app-type TYPE", "")
		case of:
			l.sites = append(l.sites, setting{component, "muster." + key, v.Value})
		case strings.HasPrefix(v.name, "muster."):
			l.sites = append(l.sites, setting{"", v.name, v.Value})
		case strings.HasPrefix(v.name, confEnv), slices.Contains(known, v.name), clusterConf(v.name):
			if !l.given(v.name) {
				l.confs[v.name] = v.Value
			}
		case remoteConf(v.name):
			if !l.given(v.name) {
				l.carried[v.name] = v.Text
				l.unsaid = append(l.unsaid, v.name)
			}
		case !service(v.name):
			unknown = append(unknown, v.name)
		}
	}
	if len(unknown) == 0 {
		return
	}
	hint := "they are ignored"
	if len(unknown) == 1 {
		hint = "it is ignored"
		if near := appdef.DidYouMean(unknown[0], append(known, idleConfs[:]...)); near != "" {
			hint = near
		}
	}
	at := appdef.Place{File: site.file}
	l.found = append(l.found, at.Warning("the unknown "+strings.Join(unknown, ", "), "names of HBox's confs", hint))
}

// given tells whether the command line says what a conf says.
func (l *line) given(conf string) bool {
	if _, ok := l.confs[conf]; ok {
		return true
	}
	if _, ok := l.carried[conf]; ok {
		return true
	}
	for _, o := range optionTable {
		if _, ok := l.options[o.name]; ok && o.conf == conf {
			return true
		}
	}
	return false
}

// remoteConf tells whether a launcher is asked for what a conf says.
func remoteConf(name string) bool {
	return slices.ContainsFunc(optionTable[:], func(o option) bool { return o.remote && o.conf == name })
}

// service tells whether a conf is of YARN, Hadoop or HBox's own services: an administrator's file has many of them.
func service(name string) bool {
	return slices.Contains(idleConfs[:], name) || idleOptionConf(name) || hadoop(name) ||
		strings.HasPrefix(name, "hbox.history.") || strings.HasPrefix(name, "hbox.cluster.")
}
