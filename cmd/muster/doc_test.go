package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	diff "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/cmd/internal/console"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestReferenceIsCurrent holds the generated parts of the manual to the program.
func TestReferenceIsCurrent(t *testing.T) {
	for file, text := range map[string]string{
		"../../doc/commands.md": commandReference(),
		"../../doc/settings.md": settingReference(),
		"../../doc/metainfo.md": metainfoReference(t),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(string(have), text); d != "" {
			t.Errorf("%s is not what the program says (make golden): -have +want\n%s", file, d)
		}
	}
}

// TestTablesAreCurrent holds the tables in the package authors' manual, which stand between marks, to the program.
func TestTablesAreCurrent(t *testing.T) {
	const file = "../../doc/packages.md"
	tables := map[string]string{"placeholders": placeholderRows(), "injected": injectedRows()}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for name, text := range tables {
		begin, end := "<!-- table "+name+", printed by the program -->\n", "<!-- end of "+name+" -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for the table %s: %s … %s", file, name, begin, end)
		}
		want = before + begin + text + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := diff.Diff(string(have), want); d != "" {
		t.Errorf("%s is not what the program says (make golden): -have +want\n%s", file, d)
	}
}

// metainfoReference has a line for each field of metainfo. The words are those of the schema, which a test of its own holds
// to the types that the loader knows.
func metainfoReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../doc/schema/metainfo.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schemaNode
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Metainfo\n\nEvery field of `metainfo.json`, printed from the program (`make golden`). `metainfo.xml` has the same names as elements, and a\n" +
		"list around what stands more than once: `<components><component>…`. `[]` is a list. Numbers, `true` and `false` may also be texts; a field that\n" +
		"is not here is a warning of `muster validate`. [packages.md](packages.md) says what to make of them, the JSON Schema is in\n" +
		"[schema/](schema/metainfo.schema.json).\n\n| field | values | meaning |\n|---|---|---|\n")
	s.rows(&b, s.Defs, "")
	return b.String()
}

// schemaNode is what the table takes from a JSON Schema.
type schemaNode struct {
	Ref         string      `json:"$ref"`
	Description string      `json:"description"`
	Properties  schemaParts `json:"properties"`
	Items       *schemaNode `json:"items"`
	Required    []string    `json:"required"`
	Enum        []any       `json:"enum"`
	Examples    []any       `json:"examples"`
	Default     any         `json:"default"`
	Defs        schemaParts `json:"$defs"`
}

// schemaParts are named schemas in the order of the file.
type schemaParts []schemaPart

type schemaPart struct {
	name string
	schemaNode
}

func (p *schemaParts) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the brace
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		part := schemaPart{name: fmt.Sprint(name)}
		if err := d.Decode(&part.schemaNode); err != nil {
			return err
		}
		*p = append(*p, part)
	}
	return nil
}

func (s schemaNode) rows(b *strings.Builder, all schemaParts, above string) {
	for _, field := range s.Properties {
		name, about, needed := above+field.name, field.Description, ""
		if field.Items != nil {
			name, field.schemaNode = name+"[]", *field.Items
		}
		if slices.Contains(s.Required, field.name) {
			needed = ", needed"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", name, needed, field.values(), cell(strings.TrimSuffix(about, ".")))
		for _, in := range all {
			if field.Ref == "#/$defs/"+in.name {
				in.rows(b, all, name+".")
			}
		}
	}
}

// values are the words that a field may have.
func (s schemaNode) values() string {
	var words []string
	for _, v := range append(s.Enum, s.Examples...) {
		if _, text := v.(string); !text {
			continue // the same as a number
		}
		word := fmt.Sprintf("`%v`", v)
		if v == s.Default {
			word += " (default)"
		}
		words = append(words, word)
	}
	if len(words) == 0 && s.Default != nil {
		return fmt.Sprintf("`%v` (default)", s.Default)
	}
	return strings.Join(words, ", ")
}

func placeholderRows() string {
	var b strings.Builder
	b.WriteString("| placeholder | value |\n|---|---|\n")
	for _, p := range appdef.PlaceholderTable() {
		fmt.Fprintf(&b, "| `${%s}`", p.Name)
		if p.Lower {
			fmt.Fprintf(&b, ", `${%s.lc}`", p.Name)
		}
		about := p.Meaning
		if p.Client {
			about += " †"
		}
		fmt.Fprintf(&b, " | %s |\n", cell(about))
	}
	return b.String()
}

func injectedRows() string {
	var b strings.Builder
	b.WriteString("| key of `global` | value |\n|---|---|\n")
	for _, k := range appdef.InjectedTable() {
		fmt.Fprintf(&b, "| `%s` | `%s`", k.Key, k.Value)
		if k.Else != "" {
			b.WriteString(", or " + k.Else)
		}
		if k.Yields {
			b.WriteString(", unless the definition has another")
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// keyRows are keys of Slider's, of one document.
func keyRows(keys []slider.Key) string {
	var b strings.Builder
	b.WriteString("| key | default | meaning |\n|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, code(k.Default), cell(k.Meaning))
	}
	return b.String()
}

// cell is a text that stands in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func commandReference() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nPrinted from the program (`make golden`). Every flag may also be given as `MUSTER_AGENT_<FLAG>`, with `_` for `-`.\n")
	root := newRoot(console.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	root.InitDefaultCompletionCmd("") // Execute would add it
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		describe(&b, cmd)
		for _, below := range cmd.Commands() {
			if cmd.Name() != "completion" && !below.Hidden {
				describe(&b, below)
			}
		}
	}
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.Help(); err != nil {
		panic(err)
	}
	// help adds its own flag only when it has run: leave it out
	fmt.Fprintf(b, "\n## %s\n\n```\n%s```\n", cmd.CommandPath(), strings.TrimLeft(out.String(), "\n"))
}

func settingReference() string {
	var b strings.Builder
	b.WriteString("# Settings\n\nPrinted from the program (`make golden`). Behaviour belongs into appConfig and limits into resources, but each file accepts both.\n" +
		"A component's own value wins over the global one. Durations are `90`, `90s`, `5m`, `1h30m`, `2d`; memory is in MB.\n\n" +
		"| key | default | of | meaning |\n|---|---|---|---|\n")
	for _, k := range appdef.Keys() {
		scope := "component"
		if k.Global {
			scope = "app"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, code(k.Default), scope, k.Meaning)
	}
	b.WriteString("\n## Slider's keys of resources\n\nOther keys that begin with `yarn.` are ignored.\n\n" +
		keyRows(slider.ResourceKeys()) +
		"\n## Slider's keys of appConfig\n\nOther keys of the global section are kept, for scripts and placeholders.\n\n" + keyRows(slider.ConfigKeys()))
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Each help fits a terminal of 80 columns, and no example is broken.
func TestHelpFitsATerminal(t *testing.T) {
	var out bytes.Buffer
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		out.Reset()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s --help: got %d columns, want at most 80: %s", cmd.CommandPath(), n, line)
			}
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.Contains(out.String(), strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s --help: got an example that 80 columns break: %s", cmd.CommandPath(), line)
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(newRoot(console.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}))
}
