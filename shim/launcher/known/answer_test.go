package known

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
)

// TestEveryCodeIsTold holds the tables together: each launcher is told each answer once, and each code has one answer.
func TestEveryCodeIsTold(t *testing.T) {
	for _, l := range append([]Launcher{{Agents: launcher.None}}, all...) {
		n := l.Agents.Name
		var got []int
		for i, told := range Describe(launcher.Found{Name: n}, launcher.Host{}).Answers {
			if told.Answer != string(launcher.Answers()[i]) || told.Does == "" {
				t.Errorf("%s: answer %d is %+v", n, i, told)
			}
			got = append(got, told.Codes...)
		}
		slices.Sort(got)
		var want []int
		for _, c := range launcher.Codes() {
			want = append(want, c.Code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is told of %v, want %v", n, got, want)
		}
		if len(l.Agents.Actions) != len(launcher.Answers()) {
			t.Errorf("%s has %d actions", n, len(l.Agents.Actions))
		}
	}
}

// TestSurvives: who starts nothing again keeps nothing, and words are those of the table.
func TestSurvives(t *testing.T) {
	words := []string{
		launcher.KeptIndex, launcher.KeptPorts, launcher.KeptHost, launcher.KeptContainer, launcher.KeptWork, launcher.KeptLogs,
	}
	for _, l := range append([]Launcher{{Agents: launcher.None}}, all...) {
		s := l.Agents.Survival
		if (s.By == "") != (len(s.Keeps) == 0) || s.Keeps == nil {
			t.Errorf("%s: %+v", l.Agents.Name, s)
		}
		for _, k := range s.Keeps {
			if !slices.Contains(words, k) {
				t.Errorf("%s keeps %q", l.Agents.Name, k)
			}
		}
	}
}
