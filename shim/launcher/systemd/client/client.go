package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// client lays units into a folder of this host and starts their target by systemctl.
type client struct {
	// Dir is a folder that systemd reads units from.
	Dir string
	// Units are the texts that room render wrote, by their paths below Dir.
	Units map[string]string

	job.Runner
	target    string
	instances []string
}

// Start lays the units and starts the target, without waiting for the gang. The id is the target's name. One that is
// active is ErrRuns.
func (s *client) Start(ctx context.Context) (id string, err error) {
	if err := s.read(); err != nil {
		return "", err
	}
	now, err := s.show(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range now {
		if u.up() {
			return "", fmt.Errorf("systemd: %s %w: end it with muster stop, or systemctl stop %s",
				u.name, job.ErrRuns, s.target)
		}
	}
	if err := s.ours(); err != nil {
		return "", fmt.Errorf("systemd: %w", err)
	}
	if err := s.lay(); err != nil {
		return "", fmt.Errorf("systemd: units: %w; --unit-dir names another folder", err)
	}
	if err := s.control(ctx, "daemon-reload"); err != nil {
		return "", err
	}
	failed := s.failed(now)
	if err := s.control(ctx, append([]string{"reset-failed", s.target}, failed...)...); err != nil && len(failed) > 0 {
		return "", err
	}
	if _, err := s.Send(ctx, "", "systemctl", "start", "--no-block", s.target); err != nil {
		return "", fmt.Errorf("systemd: %w", err)
	}
	return s.target, nil
}

// read finds the target and its instances among the units.
func (s *client) read() error {
	for name, text := range s.Units {
		if filepath.Ext(name) != ".target" {
			continue
		}
		s.target = name
		for line := range strings.Lines(text) {
			if instance, ok := strings.CutPrefix(strings.TrimSpace(line), "Wants="); ok {
				s.instances = append(s.instances, instance)
			}
		}
	}
	if s.target == "" {
		return errors.New("systemd: no target among the units")
	}
	return nil
}

// ours refuses to write over units that muster has not written.
func (s *client) ours() error {
	for name, text := range s.Units {
		path := filepath.Join(s.Dir, name)
		there, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("units: %w; --unit-dir names another folder", err)
		}
		if begins(string(there)) != begins(text) {
			return fmt.Errorf("%s %w: give another --app-id or --unit-dir", path, job.ErrForeign)
		}
	}
	return nil
}

// begins are the words by which room render's units of a kind begin: `# One agent`, `# The instances`, `# Limits of`.
func begins(unit string) string {
	first, _, _ := strings.Cut(unit, "\n")
	words := strings.Fields(first)
	return strings.Join(words[:min(len(words), 3)], " ")
}

// lay writes the units, each whole or not at all, and takes away the limits of an earlier run's instances.
func (s *client) lay() error {
	template := quoteMeta(strings.TrimSuffix(s.target, ".target"))
	stale, err := filepath.Glob(filepath.Join(s.Dir, template+"@*.service.d", "limits.conf"))
	if err != nil {
		return err
	}
	for _, path := range stale {
		if text, err := os.ReadFile(path); err != nil || begins(string(text)) != "# Limits of" {
			continue
		}
		err := errors.Join(os.Remove(path), os.Remove(filepath.Dir(path)))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	for name, text := range s.Units {
		path := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, []byte(text)) {
			continue
		}
		err := os.WriteFile(path+".new", []byte(text), 0o644) //nolint:gosec // units are read by everybody
		if err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// quoteMeta keeps a unit's name from being a pattern: `\x2b` is in some.
func quoteMeta(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// unit is how one stands.
type unit struct{ name, active, sub, result, code, job string }

// up tells that it runs, or will.
func (u unit) up() bool {
	return u.active != "inactive" && u.active != "failed" && u.active != "" || u.job != "" && u.job != "0"
}

// show asks for all instances.
func (s *client) show(ctx context.Context) ([]unit, error) {
	words := append([]string{
		"systemctl", "show", "--property=Id,ActiveState,SubState,Result,ExecMainStatus,Job",
		"--",
	}, s.instances...)
	said, err := s.Run(ctx, "", words...)
	if err != nil {
		return nil, fmt.Errorf("systemd: %w", err)
	}
	var all []unit
	for block := range strings.SplitSeq(strings.TrimSpace(said), "\n\n") {
		var u unit
		at := map[string]*string{
			"Id": &u.name, "ActiveState": &u.active, "SubState": &u.sub, "Result": &u.result,
			"ExecMainStatus": &u.code, "Job": &u.job,
		}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if field := at[name]; field != nil {
				*field = value
			}
		}
		all = append(all, u)
	}
	return all, nil
}

func (s *client) failed(units []unit) []string {
	var names []string
	for _, u := range units {
		if u.active == "failed" {
			names = append(names, u.name)
		}
	}
	return names
}

// State is over when no instance is up any more.
func (s *client) State(ctx context.Context) (job.State, error) {
	units, err := s.show(ctx)
	if err != nil {
		return job.State{}, err
	}
	counts := map[string]int{}
	state := job.State{Over: true, OK: true}
	var whys []string
	for _, u := range units {
		state.Over = state.Over && !u.up()
		counts[u.active]++
		if u.active == "failed" {
			state.OK = false
			whys = append(whys, u.name+" "+u.result+job.After(", exit code ", u.code))
		}
	}
	var words []string
	for _, word := range []string{"activating", "active", "deactivating", "inactive", "failed"} {
		if counts[word] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[word], word))
		}
	}
	slices.Sort(whys)
	state.Word, state.Why = strings.Join(words, ", "), strings.Join(whys, "; ")
	return state, nil
}

// Stop stops the target, and its instances with it, without waiting for their grace.
func (s *client) Stop(ctx context.Context) error {
	return s.control(ctx, append([]string{"stop", "--no-block", s.target}, s.instances...)...)
}

func (s *client) control(ctx context.Context, words ...string) error {
	if _, err := s.Run(ctx, "", append([]string{"systemctl"}, words...)...); err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it.
func (s *client) Hints() (follow, end string) {
	template := strings.TrimSuffix(s.target, ".target")
	return "systemctl list-dependencies " + s.target + " (logs: journalctl -u '" + template + "@*')",
		"systemctl stop " + s.target
}
