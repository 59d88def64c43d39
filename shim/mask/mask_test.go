package mask

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const roleVariable = "MUSTER_TEST_ARGUMENTS"

// TestMain plays a program that prints its arguments, and those that /proc has, where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	args := Arguments()
	seen, _ := os.ReadFile("/proc/self/cmdline")
	fmt.Printf("%q %q\n", args[1:], bytes.Split(seen, []byte{0})[1:])
}

func TestName(t *testing.T) {
	for _, name := range []string{
		"PASSWORD", "DB_PASSWORD", "PGPASSWORD", "db.passwd", "API_KEY", "apiKey", "AWS_SECRET_ACCESS_KEY", "CONSUL_HTTP_TOKEN",
		"GITHUBTOKEN", "authToken", "SECRET", "GOOGLE_CREDENTIALS", "site.core-site.fs.s3a.secret.key", "DB_PWD", "KEY",
	} {
		if !named(name) {
			t.Errorf("%s is not taken for a secret", name)
		}
	}
	for _, name := range []string{
		"PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MONKEY", "CONSUL_HTTP_TOKEN_FILE", "SSH_KEY_PATH", "HADOOP_TOKEN_FILE_LOCATION",
		"MUSTER_SECRET_DIR", "AWS_ACCESS_KEY_ID", "PATH", "AUTHOR", "COMPASS", "", "_",
	} {
		if named(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}

func TestHide(t *testing.T) {
	var s Set
	if got := s.Hide("all of it"); got != "all of it" {
		t.Errorf("an empty set: got %q", got)
	}
	s.Add("short", "hunter22", `a "quoted" <one>`, "hunter22-longer", "first line\nsecond line\n")
	s.AddNamed(map[string]string{"API_KEY": "abcdefgh", "COLOR": "turquoise"})
	for text, want := range map[string]string{
		"short":                                "short",
		"x hunter22, hunter22-longer":          "x (secret), (secret)",
		`{"a":"a \"quoted\" <one>"}`:           `{"a":"(secret)"}`,
		`{"a":"a \"quoted\" \u003cone\u003e"}`: `{"a":"(secret)"}`,
		"only the second line":                 "only the (secret)",
		"abcdefgh turquoise":                   "(secret) turquoise",
	} {
		if got := s.Hide(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Whatever the handler quotes, the values do not reach the log.
func TestLogHides(t *testing.T) {
	var s Set
	var b bytes.Buffer
	for _, log := range []*slog.Logger{
		slog.New(slog.NewTextHandler(s.Writer(&b), nil)), slog.New(slog.NewJSONHandler(s.Writer(&b), nil)),
	} {
		s.Add(`p"ss w\rd`)
		log.Info(`is p"ss w\rd here`, "cause", `no p"ss w\rd`, slog.Group("g", "x", []string{`p"ss w\rd`}))
	}
	if got := b.String(); strings.Contains(got, "ss w") || strings.Count(got, Shown) != 6 {
		t.Errorf("got %s", got)
	}
}

func TestSecretSpans(t *testing.T) {
	args := []string{
		"muster", "run", "app", "--env", "X=secret", "--env=Y=secret", "--env", "Z", "--set", "a.muster.env.T=secret",
		"--set=a.password=secret", "--set", "a.color=blue", "--", "--env", "X=argument",
	}
	want := map[int]string{4: "secret", 5: "secret", 9: "secret", 10: "secret"}
	got := secretSpans(args)
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for i, value := range want {
		if args[i][got[i]:] != value {
			t.Errorf("%s: got %q", args[i], args[i][got[i]:])
		}
	}
}

func TestHand(t *testing.T) {
	tests := []struct {
		name               string
		args, shown, taken []string
	}{
		{
			"of an agent",
			[]string{"agent", "--env", "X=secret", "--set=a=secret", "--app", "b", "--env=Y"},
			[]string{"agent", "--app", "b"},
			[]string{"agent", "--app", "b", "--env=X=secret", "--set=a=secret", "--env=Y"},
		},
		{
			"of a program",
			[]string{"run", "--set=a=b", "--fresh=true", "--env=X=secret", "--", "python3", "t.py", "--env", "of=its", "--", "--set"},
			[]string{"run", "--fresh=true", "--", "python3", "t.py", "--env", "of=its", "--", "--set"},
			[]string{"run", "--fresh=true", "--set=a=b", "--env=X=secret", "--", "python3", "t.py", "--env", "of=its", "--", "--set"},
		},
		{"none", []string{"run", "--", "true"}, []string{"run", "--", "true"}, []string{"run", "--", "true"}},
	}
	for _, tt := range tests {
		shown, variables := Hand(tt.args)
		if !slices.Equal(shown, tt.shown) {
			t.Errorf("%s: shown: got %q, want %q", tt.name, shown, tt.shown)
		}
		for _, v := range variables {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		if args, err := Take(shown); err != nil || !slices.Equal(args, tt.taken) {
			t.Errorf("%s: taken: got %q, %v, want %q", tt.name, args, err, tt.taken)
		}
		if again, err := Take(nil); err != nil || len(again) > 0 || slices.ContainsFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, handedOver)
		}) {
			t.Errorf("%s: again: got %q, %v", tt.name, again, err)
		}
	}
}

// Nobody reads a value in the command line of a process that got it as an argument; the process itself has it.
func TestAttackCommandLine(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--env", "X=hunter22", "end")
	cmd.Env = append(os.Environ(), roleVariable+"=1")
	out, err := cmd.Output()
	if want := `["--env" "X=hunter22" "end"] ["--env" "X=********" "end" ""]` + "\n"; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}

// Who chooses an agent's environment gives it no flag but those that Hand puts there.
func TestTakesNoOtherFlag(t *testing.T) {
	t.Setenv(handedOver+"0", "--env=A=b")
	t.Setenv(handedOver+"1", "--userns=host")
	if args, err := Take(nil); err == nil || !strings.Contains(err.Error(), "got --userns, want --env or --set") {
		t.Errorf("got %q, %v", args, err)
	}
}
