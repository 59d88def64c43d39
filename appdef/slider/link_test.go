package slider_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef/slider"
)

func TestLinksOfAPackage(t *testing.T) {
	const run = `"commands": [{"exec": "true"}]`
	for _, test := range []struct{ name, link, target, want string }{
		{"inside", "package/scripts/o.py", "../files/o.py", ""},
		{"to nothing inside", "package/scripts/o.py", "gone.py", ""},
		{"out by its text", "package/scripts/o.py", "../../../out/o.py", `package/scripts/o.py#: got a link to "../../../out/o.py", want one that stays inside the package; no agent takes it, and no build`},
		{"absolute", "package/scripts/o.py", "/etc/hosts", `package/scripts/o.py#: got a link to "/etc/hosts", want one that stays inside the package; no agent takes it, and no build`},
		{"the folder", "package", "/usr", `package#: got a link to "/usr", want one that stays inside the package; no agent takes it, and no build`},
		{"to itself", "package/scripts/o.py", "o.py", `package/scripts/o.py#: got a link to "o.py", want one that stays inside the package; no agent takes it, and no build`},
		{"beside the package's files", "w1/root", "/", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, small(run, run, `"global": {}`, nil)); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(dir, test.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(test.target, link); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			_, found := slider.Load(root.FS(), slider.Options{})
			if diff := cmp.Diff(found.Errors().Error(), test.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
}
