package oneline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a process in a container does not see comes along, is warned of, or refuses the run.
func TestUnseen(t *testing.T) {
	far := t.TempDir() // below /tmp
	if !strings.HasPrefix(far, "/tmp/") {
		t.Fatalf("%s is not below /tmp", far)
	}
	for name, mode := range map[string]os.FileMode{"x.sh": 0o755, "x.py": 0o644, "y.py": 0o644, "tool": 0o755, "data.csv": 0o644} {
		text := ""
		if name == "x.py" {
			text = "import y, torch\n"
		}
		if err := os.WriteFile(filepath.Join(far, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	const itsOwn = " is not seen by a process in a container: it has a /tmp of its own; "
	for _, tt := range []struct {
		name, words     string // @ is the folder of the files
		change          func(*Line)
		want, out, fail string
		brings          string
	}{
		{name: "a script", words: "sh @/x.sh a", want: "sh ./x.sh a", out: "brings: @/x.sh as ./x.sh ", brings: "x.sh"},
		{
			name: "with its modules", words: "python3 -u @/x.py", want: "python3 -u ./x.py",
			out: "brings: @/x.py as ./x.py, @/y.py ", brings: "x.py y.py",
		},
		{name: "as the program", words: "@/x.sh", want: "./x.sh", out: "brings: @/x.sh as ./x.sh ", brings: "x.sh"},
		{
			name: "beside files of this folder", words: "sh @/x.sh here.sh", want: "sh ./x.sh here.sh",
			out: "brings: @/x.sh as ./x.sh, here.sh ", brings: "here.sh x.sh",
		},
		{
			name: "in the place of one of this folder", words: "python3 y.py @/x.py",
			fail: "@/x.py: a process in a container does not see it: it has a /tmp of its own; it cannot come along beside the y.py of ",
		},
		{
			name: "in the place of one of --dir", words: "python3 @/y.py", change: func(l *Line) { l.dir = "." },
			fail: "cd to @ and name it from there",
		},
		{
			name: "which is seen", words: "sh @/x.sh", change: func(l *Line) { l.HostRoot = true },
			want: "sh @/x.sh", out: "brings: nothing; @/x.sh stays where it is",
		},
		{
			name: "which a policy shows", words: "sh @/x.sh", change: func(l *Line) { l.Seen = []string{"/tmp"} },
			want: "sh @/x.sh", out: "brings: nothing; @/x.sh stays where it is",
		},
		{
			name: "in an image", words: "sh @/x.sh", change: func(l *Line) { l.Image = "r/i:1" },
			want: "sh @/x.sh", out: "brings: nothing; @/x.sh stays where it is",
		},
		{
			name: "another file", words: "cat --of=@/data.csv", want: "cat --of=@/data.csv",
			out: "warning: @/data.csv" + itsOwn + "cd to its folder and name it from there, which brings it, or keep it where all may read",
		},
		{name: "a program", words: "@/tool", want: "@/tool", out: "warning: @/tool" + itsOwn + "install it where all may read"},
		{
			name: "a program that surely is not seen", words: "@/tool", change: func(l *Line) { l.Container = true },
			fail: "@/tool" + itsOwn + "install it where all may read, such as /opt, or take an --image, or say --engine process",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"here.sh", "y.py"} {
				if err := os.WriteFile(name, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			at := func(text string) string { return strings.ReplaceAll(text, "@", far) }
			l := Line{Words: strings.Fields(at(tt.words))}
			if tt.change != nil {
				tt.change(&l)
			}
			out := &strings.Builder{}
			_, err := l.Read("run", nil, out)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), at(tt.fail)) {
					t.Fatalf("got %v, want %q", err, at(tt.fail))
				}
				return
			}
			if got := strings.Join(l.program.Words, " "); err != nil || got != at(tt.want) || !strings.Contains(out.String(), at(tt.out)) {
				t.Errorf("got %q, %v and\n%s\nwant %q and %q", got, err, out, at(tt.want), at(tt.out))
			}
			dir, remove, err := l.Write(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			entries, _ := os.ReadDir(filepath.Join(dir, "package", "files"))
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if !slices.Equal(names, strings.Fields(tt.brings)) {
				t.Errorf("the package has %v, want %s", names, tt.brings)
			}
			if err := remove(); err != nil {
				t.Error(err)
			}
		})
	}
}
