package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/skeleton"
	"github.com/muster-agent/muster/tests/need"
)

// TestFindings has what `package lint` says before a run would: each with what is wrong, and the same package mended.
func TestFindings(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs a Python 3")
	}
	java := filepath.Join(t.TempDir(), "jdk")
	if err := os.MkdirAll(filepath.Join(java, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(java, "bin/java"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	const header = "from resource_management import *\nconfig = Script.get_config()\n"
	port := `"site.global.web.port": "${web.ALLOCATED_PORT}{PER_CONTAINER}"`
	for _, test := range []struct {
		name         string
		broken, mend parts
		want         string
	}{
		{
			name:   "a value that nobody sets",
			broken: parts{params: header + "heap = config['configurations']['global']['heap']\n"},
			mend:   parts{params: header + "heap = config['configurations']['global']['heap']\n", global: `"site.global.heap": "1g"`},
			want: `package/scripts/params.py:3: got config["configurations"]["global"]["heap"], which nobody sets, ` +
				`want site.global.heap in appConfig, or heap in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/heap", VALUE) gives it one`,
		},
		{
			name:   "one that is misspelt, by a name of its own",
			broken: parts{params: header + "settings = config['configurations']\nown = settings['global']\nprint(own['heep'])\n", global: `"site.global.heap": "1g"`},
			mend:   parts{params: header + "settings = config['configurations']\nown = settings['global']\nprint(own['heap'])\n", global: `"site.global.heap": "1g"`},
			want: `package/scripts/params.py:5: got config["configurations"]["global"]["heep"], which nobody sets, ` +
				`want site.global.heep in appConfig, or heep in configuration/global.xml; did you mean heap?`,
		},
		{
			name:   "one that may be missing",
			broken: parts{params: header + "a = config['configurations']['global']['a']\n"},
			mend: parts{params: header + "own = config['configurations']['global']\n" +
				"a = own['a'] if 'a' in own else 1\nb = own.get('b')\nc = default('/configurations/global/c', 3)\n" +
				"d = own['d']\nif is_empty(d):\n    d = 4\ntry:\n    f = own['f']\nexcept Fail:\n    f = 6\n"},
			want: `package/scripts/params.py:3: got config["configurations"]["global"]["a"], which nobody sets, ` +
				`want site.global.a in appConfig, or a in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/a", VALUE) gives it one`,
		},
		{
			name:   "a dictionary that nobody declares",
			broken: parts{params: header + "site = config['configurations']['web-site']\nroot = site['root']\n"},
			mend: parts{
				params: header + "site = config['configurations']['web-site']\nroot = site['root']\n", declares: "web-site",
				files: map[string]string{"configuration/web-site.xml": "<configuration><property><name>root</name><value>/</value></property></configuration>"},
			},
			want: `package/scripts/params.py:3: got config["configurations"]["web-site"], which nobody sets, ` +
				`want the dictionary web-site in configFiles, with configuration/web-site.xml or values site.web-site.KEY; the script fails where it uses it`,
		},
		{
			name:   "a dictionary without a file",
			broken: parts{declares: "web-site"},
			mend:   parts{declares: "web-site", global: `"site.web-site.root": "/"`},
			want: `metainfo.json#/application/configFiles/0: got the dictionary "web-site" without a value, ` +
				`want configuration/web-site.xml or a value site.web-site.KEY in appConfig; scripts get it without keys`,
		},
		{
			name:   "what Slider does not tell",
			broken: parts{params: header + "hosts = config['clusterHostInfo']['web_hosts']\nstack = config['hostLevelParams']['stack_version']\n"},
			mend:   parts{params: header + "own = config['hostLevelParams']['container_id']\nname = config['commandParams']['script'], config['commandParams']['command']\n"},
			want: `package/scripts/params.py:3: got config["clusterHostInfo"], which nobody sets, ` +
				`want ${COMPONENT_HOST} in a value of appConfig, or the exports at MUSTER_SLIDER_URL; Ambari tells scripts the hosts of components so, Slider does not: the script fails where it uses it
package/scripts/params.py:4: got config["hostLevelParams"]["stack_version"], which nobody sets, ` +
				`want one of container_id, java_home, package_list; the script fails where it uses it`,
		},
		{
			name:   "one that is set for every component, misspelt",
			broken: parts{params: header + "own = config['configurations']['global']\ntag = own['app_container_tg']\n"},
			mend: parts{params: header + "own = config['configurations']['global']\ntag = own['app_container_tag'], own['app_container_id']\n" +
				"for_all = own['app_root'], own['app_install_dir'], own['app_log_dir'], own['app_pid_dir'], own['pid_file'], " +
				"own['app_conf_dir'], own['app_input_conf_dir'], own['security_enabled']\n"},
			want: `package/scripts/params.py:4: got config["configurations"]["global"]["app_container_tg"], which nobody sets, ` +
				`want site.global.app_container_tg in appConfig, or app_container_tg in configuration/global.xml; did you mean app_container_tag?`,
		},
		{
			name: "one beside those that the file tests for",
			broken: parts{params: header + "own = config.get('configurations', {}).get('global', {}).get('a')\n" +
				"own = config['configurations']['global']['a']\nb = config['configurations']['global']['b']\n"},
			mend: parts{params: header + "site = config['configurations'].get('site', {})\nown = config.get('configurations', {})\n" +
				"if 'web' in config['configurations']:\n    b = config['configurations']['web']['b']\n"},
			want: `package/scripts/params.py:5: got config["configurations"]["global"]["b"], which nobody sets, ` +
				`want site.global.b in appConfig, or b in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/b", VALUE) gives it one`,
		},
		{
			name: "one that has_key and default ask for",
			broken: parts{params: header + "own = config['configurations']['global']\nif own.has_key('a'):\n    a = own['a']\n" +
				"if default('/configurations/global/b', None) is not None:\n    b = own['b']\nif default('c', 0):\n    c = own['c']\nd = own['d']\n"},
			mend: parts{params: header + "own = config['configurations']['global']\nif own.has_key('a'):\n    a = own['a']\n" +
				"if default('/configurations/global/b', None) is not None:\n    b = own['b']\nif default('c', 0):\n    c = own['c']\n"},
			want: `package/scripts/params.py:10: got config["configurations"]["global"]["d"], which nobody sets, ` +
				`want site.global.d in appConfig, or d in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/d", VALUE) gives it one`,
		},
		{
			name: "one in a try that catches something else",
			broken: parts{params: header + "own = config['configurations']['global']\ntry:\n    a = int(own['a'])\nexcept ValueError:\n    a = 1\n" +
				"try:\n    b = own['b']\nexcept (KeyError, Fail):\n    b = 2\n"},
			mend: parts{params: header + "own = config['configurations']['global']\ntry:\n    a = int(own['a'])\nexcept Exception:\n    a = 1\n" +
				"try:\n    b = own['b']\nexcept:\n    b = 2\n"},
			want: `package/scripts/params.py:5: got config["configurations"]["global"]["a"], which nobody sets, ` +
				`want site.global.a in appConfig, or a in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/a", VALUE) gives it one`,
		},
		{
			name: "one by a name that two functions give the same value",
			broken: parts{params: header + "def one():\n    own = config['configurations']['global']\n    print(own['a'])\n" +
				"def two():\n    own = config['configurations']['global']\n    print(own['b'])\n", global: `"site.global.a": "1"`},
			mend: parts{params: header + "def one():\n    own = config['configurations']['global']\n    print(own['a'])\n" +
				"def two():\n    own = dict()\n    print(own['b'])\ndef three(own):\n    print(own['c'])\n", global: `"site.global.a": "1"`},
			want: `package/scripts/params.py:8: got config["configurations"]["global"]["b"], which nobody sets, ` +
				`want site.global.b in appConfig, or b in configuration/global.xml; the script fails where it uses it; ` +
				`default("/configurations/global/b", VALUE) gives it one`,
		},
		{
			name: "methods that dictionaries had in Python 2",
			broken: parts{params: header + "for a, b in config['configurations']['global'].iteritems():\n    print(a)\n" +
				"for a, b in dict(c=1).iteritems():\n    print(a)\n"},
			mend: parts{params: header + "own = config['configurations']['global']\nif own.has_key('a') and config.has_key('hostLevelParams'):\n    for a in own.iterkeys():\n        print(a)\n"},
			want: "package/scripts/params.py:5: got AttributeError: 'dict' object has no attribute 'iteritems', " +
				"want what Python 3 can run; `for a, b in dict(c=1).iteritems():` fails on a plain dict: write .items(); muster package modernize DIR --write does it",
		},
		{
			name:   "a Java that nobody names",
			broken: parts{params: header + "java = config['hostLevelParams']['java_home']\n"},
			mend:   parts{params: header + "java = config['hostLevelParams']['java_home']\n", global: `"java_home": "` + java + `"`},
			want: `package/scripts/params.py:3: got config["hostLevelParams"]["java_home"], which nobody sets, ` +
				`want java_home in appConfig; "${JAVA_HOME}" is that of the host`,
		},
		{
			name:   "a Java that is not there",
			broken: parts{global: `"java_home": "/usr/no/jdk"`},
			mend:   parts{global: `"java_home": "` + java + `"`},
			want: `appConfig.json#/global/java_home: got "/usr/no/jdk", which has no bin/java on this host, ` +
				`want the folder of a Java, or ${JAVA_HOME}; where the app runs it must be there, or be given by --set JAVA_HOME=PATH`,
		},
		{
			name:   "the Java of the host",
			broken: parts{global: `"java_home": "${JAVA_HOME}"`},
			mend:   parts{global: `"java_home": "${JAVA_HOME}", "muster.image": "registry.example/web:1"`},
			want: `appConfig.json#/global/java_home: got "${JAVA_HOME}", which the package does not set, ` +
				`want JAVA_HOME, or a java in PATH, on each host that runs the app; where there is neither, scripts get no java_home; --set JAVA_HOME=PATH gives it`,
		},
		{
			name:   "a Java by a relative path",
			broken: parts{global: `"java_home": "jdk"`},
			mend:   parts{global: `"java_home": "jdk", "muster.image": "registry.example/web:1"`},
			want:   `appConfig.json#/global/java_home: got "jdk", want an absolute path; scripts get it as it is written`,
		},
		{
			name:   "a port that no export names",
			broken: parts{global: port},
			mend:   parts{global: port, export: "${web_HOST}:${site.global.web.port}"},
			want: `appConfig.json#/global/site.global.web.port: got a port that no export tells of, ` +
				`want an export with ${site.global.web.port}; others cannot find it`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, one := range []struct {
				parts parts
				want  string
			}{{test.broken, test.want}, {test.mend, ""}} {
				result, err := Run(t.Context(), &packages.Package{FS: one.parts.pack(), Name: "web"}, false)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(result.Problems.Error(), one.want); diff != "" {
					t.Errorf("got -, want +:\n%s", diff)
				}
			}
		})
	}
}

// A document that cannot be read is all that is told of the configuration: what it sets is not known.
func TestUnreadDefinition(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs a Python 3")
	}
	const params = "from resource_management import *\nconfig = Script.get_config()\n" +
		"heap = config['configurations']['global']['heap']\n"
	for name, text := range map[string]string{
		"appConfig.json":         `{"global": {"site.global.heap": "1" "a": "b"}}`,
		"metainfo.json":          `{"application": `,
		"configuration/site.xml": `<configuration><property></configuration>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := parts{params: params}.pack()
			files[name] = &fstest.MapFile{Data: []byte(text)}
			result, err := Run(t.Context(), &packages.Package{FS: files, Name: "web"}, false)
			if err != nil {
				t.Fatal(err)
			}
			if result.OK || len(result.Problems) != len(result.Problems.Errors()) {
				t.Errorf("got %v, want the document's error alone", result.Problems)
			}
		})
	}
}

// parts are what differs between two packages of one component, web.
type parts struct {
	params   string // package/scripts/params.py
	global   string // of appConfig
	declares string // a dictionary
	export   string // the value of an export
	files    map[string]string
}

func (p parts) pack() fstest.MapFS {
	more, exports := "", ""
	if p.declares != "" {
		more = `"configFiles": [{"type": "xml", "fileName": "` + p.declares + `.xml", "dictionaryName": "` + p.declares + `"}],`
	}
	if p.export != "" {
		more += `"exportGroups": [{"name": "g", "exports": [{"name": "x", "value": "` + p.export + `"}]}],`
		exports = `"compExports": "g-x",`
	}
	const schema = `"schema": "http://example.org/specification/v2.0.0"`
	out := fstest.MapFS{}
	for name, text := range map[string]string{
		"metainfo.json": `{"schemaVersion": "2.1", "application": {"name": "web", "version": "1", ` + more +
			`"components": [{"name": "web", ` + exports + `"commandScript": {"script": "scripts/web.py", "scriptType": "PYTHON"}}]}}`,
		"appConfig.json": `{` + schema + `, "global": {` + p.global + `}}`,
		"resources.json": `{` + schema + `, "components": {"web": {"yarn.role.priority": "1", "yarn.component.instances": "1", "yarn.memory": "64"}}}`,
		"package/scripts/web.py": "from resource_management import *\n\n\nclass Web(Script):\n    def start(self, env):\n        pass\n\n" +
			"    def status(self, env):\n        pass\n\n\nWeb().execute()\n",
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if p.params != "" {
		out["package/scripts/params.py"] = &fstest.MapFile{Data: []byte(p.params)}
	}
	for name, text := range p.files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// What `package init` writes has no finding.
func TestSkeletons(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs a Python 3")
	}
	for _, kind := range skeleton.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if _, err := skeleton.Write(kind, "own", dir); err != nil {
				t.Fatal(err)
			}
			result, err := Run(t.Context(), &packages.Package{FS: os.DirFS(dir), Path: dir, Name: "own", Folder: true}, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Problems)+len(result.Fixes) > 0 {
				var text strings.Builder
				result.Print(&text)
				t.Error(text.String())
			}
		})
	}
}
