package python2_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/packages/python2"
)

// TestTable asks the python3 of this machine: it must have nothing of what the table says Python 3 lacks.
func TestTable(t *testing.T) {
	const ask = `
import builtins, importlib, importlib.util, json, sys, warnings
warnings.simplefilter("ignore")
kinds = json.load(sys.stdin)
for kind in kinds:
    print(*[name for name in kind["builtins"] or () if hasattr(builtins, name)], sep="\n")
    print(*[name for name in kind["modules"] or () if importlib.util.find_spec(name)], sep="\n")
    print(*[name for name in kind["methods"] or () if hasattr({}, name)], sep="\n")
    for module, names in kind["members"].items():
        module = importlib.import_module(module)
        print(*[name for name in names if hasattr(module, name)], sep="\n")
`
	changed, left := python2.Table()
	text, err := json.Marshal([]python2.Removed{changed, left})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-c", ask)
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if has := strings.Fields(string(out)); len(has) > 0 {
		t.Errorf("python3 has %v", has)
	}
	if len(changed.Builtins) == 0 || len(left.Modules) == 0 || len(left.Members) == 0 {
		t.Errorf("got an empty table: %+v, %+v", changed, left)
	}
}

func TestPrograms(t *testing.T) {
	tree := fstest.MapFS{
		"metainfo.xml":  {Data: []byte("<script>scripts/store.py</script><script>scripts/run/a-b.py</script>")},
		"metainfo.json": {Data: []byte(`{"script": "scripts/run/c.py"`)},
	}
	if got, want := python2.Programs(tree), []string{"package/scripts", "package/scripts/run"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := python2.Programs(fstest.MapFS{}); got == nil || len(got) > 0 {
		t.Errorf("no metainfo: got %#v, want none, and no null in JSON", got)
	}
}
