package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestReferenceIsCurrent holds the generated parts of the manual to the program.
func TestReferenceIsCurrent(t *testing.T) {
	for file, text := range map[string]string{
		"../../doc/commands.md": commandReference(),
		"../../doc/settings.md": settingReference(),
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
		if diff := cmp.Diff(string(have), text); diff != "" {
			t.Errorf("%s is not what the program says (make golden): -have +want\n%s", file, diff)
		}
	}
}

func commandReference() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nPrinted from the program (`make golden`). Every flag may also be given as `MUSTER_AGENT_<FLAG>`, with `_` for `-`.\n")
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
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
	b.WriteString("# Settings\n\nPrinted from the program (`make golden`). They go into appConfig (behaviour) or resources (limits); either is accepted in both.\n" +
		"A component's own value wins over the global one. Durations are `90`, `90s`, `5m`, `1h30m`; memory is in MB.\n\n" +
		"| key | default | of | meaning |\n|---|---|---|---|\n")
	for _, k := range appdef.Keys() {
		scope := "component"
		if k.Global {
			scope = "app"
		}
		meaning := k.Meaning
		if k.Idle {
			meaning += " (nothing acts on it yet)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, code(k.Default), scope, meaning)
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
