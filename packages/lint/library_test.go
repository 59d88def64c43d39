package lint

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
)

// TestLacking has names that scripts take from the library, from Python or from each other, and that are not there.
func TestLacking(t *testing.T) {
	const all = "from resource_management import *\n"
	image := appdef.App{Components: []appdef.Component{{Limits: appdef.Limits{Image: "web:1"}}}}
	for _, tt := range []struct {
		name, source string
		want         []string // "LINE: what there is"
		app          appdef.App
	}{
		{name: "resources of Slider's", source: all + "Package('httpd')\nMount('/data')\nSystem.get_instance()\n", want: []string{
			"3: Mount, which muster's library lacks", "4: System, which muster's library lacks",
		}},
		{name: "of the package itself", source: all + "from functions import *\nHook('web')\n"},
		{name: "of a module of the package", source: all + "from functions import Mount\nMount('a')\n"},
		{name: "modules of Slider's", source: "from resource_management.core.system import System\n" +
			"import resource_management.libraries.functions.version\n" +
			"from ambari_commons.os_check import OSCheck\n", want: []string{
			"1: the module resource_management.core.system, which muster's library lacks",
			"2: the module resource_management.libraries.functions.version, which muster's library lacks",
			"3: the module ambari_commons.os_check, which is Ambari's",
		}},
		{name: "names of modules", source: "from resource_management.core.shell import call, cal\n" +
			"from resource_management.core import shell, Fail\n" +
			"from resource_management.libraries.functions.format import format\n", want: []string{
			"1: cal of resource_management.core.shell, which muster's library lacks",
		}},
		{name: "of another's", source: all + "from json import *\nMount('a')\nExecute('a', trys=3)\n"},
		{name: "arguments", source: all + "Execute('a', trys=3)\n" +
			"Directory('b', recursiv=True, mode=0o755, not_if='c', action='delete')\n", want: []string{
			"2: the argument trys of Execute, which it lacks", "3: the argument recursiv of Directory, which it lacks",
		}},
		{name: "arguments of another's", source: "from own import Execute\nExecute('a', trys=3)\n"},
		{name: "arguments of a class of its own", source: all + "def File(a, b): pass\nFile('a', b=3)\n" +
			"Link('x', **more)\n"},
		{name: "modules that later Pythons lack", source: "import imp, os\nimport xml.etree.cElementTree as tree\n" +
			"from collections import Mapping, OrderedDict\n" +
			"from configparser import SafeConfigParser\nimport collections\ncollections.Iterable\n" +
			"from pipes import quote\n", want: []string{
			"1: the module imp, which Python 3.12 and later lack",
			"2: the module xml.etree.cElementTree, which Python 3.9 and later lack",
			"3: collections.Mapping, which Python 3.10 and later lack",
			"4: configparser.SafeConfigParser, which Python 3.12 and later lack",
			"6: collections.Iterable, which Python 3.10 and later lack",
			"7: the module pipes, which Python 3.13 and later lack",
		}},
		{name: "those that a file does without", source: "try:\n  import cgi\nexcept ImportError:\n  cgi = None\n" +
			"import collections.abc\ncollections.abc.Mapping\ntry:\n  from collections import Mapping\n" +
			"except ImportError:\n  from collections.abc import Mapping\n"},
		{name: "a module that is nowhere", source: "from function import configure\n" +
			"import no_such_module\n", want: []string{
			"1: the module function, which this Python lacks", "2: the module no_such_module, which this Python lacks",
		}},
		{name: "one that an image may have", source: "import no_such_module\n", app: image},
		{name: "one that a path of the script's may have", source: "import sys\nsys.path.append('x')\n" +
			"import no_such_module\n"},
		{name: "bytes as text", source: "p.communicate()[0].split('a')\n" +
			"subprocess.check_output(c).strip('b')\n", want: []string{
			"1: TypeError: a bytes-like object is required, not 'str'",
			"2: TypeError: a bytes-like object is required, not 'str'",
		}},
		{name: "text of a function of its own", source: "def check_output(c):\n  return c\ncheck_output('a').split('a')\n"},
		{name: "text of a process", source: "p = Popen(c, text=True)\np.communicate()[0].split('a')\n" +
			"p.communicate()[0].split(b'a')\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{
				"package/scripts/a.py":         {Data: []byte(tt.source)},
				"package/scripts/functions.py": {Data: []byte("class Hook(object):\n  pass\n")},
				"package/scripts/own.py":       {},
			}
			scripts, unread := readScripts(t.Context(), &packages.Package{FS: tree}, tt.app, true)
			if len(unread) > 0 {
				t.Fatal(unread)
			}
			var got []string
			for _, f := range scripts[0].Faults {
				got = append(got, fmt.Sprintf("%d: %s", f.Line, f.Got))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestLackingSaysWhatToDo has the hints.
func TestLackingSaysWhatToDo(t *testing.T) {
	const source = "from resource_management import *\nRepository('a')\nExecute('a', trys=3)\n" +
		"from function import configure\nimport pipes\n"
	tree := fstest.MapFS{"package/scripts/a.py": {Data: []byte(source)}, "package/scripts/functions.py": {}}
	scripts, _ := readScripts(t.Context(), &packages.Package{FS: tree}, appdef.App{}, true)
	var got []string
	for _, f := range scripts[0].Faults {
		got = append(got, f.Want+"; "+f.Hint)
	}
	want := []string{
		"what it has; a process changes nothing of its host: put it into the image (muster.image)",
		"one that it has; did you mean tries?",
		"a file beside the script, or a module that each host's Python has; did you mean functions?",
		"shlex.quote, or subprocess; ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
