package data_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// onHadoop has the job's agents find a cluster, as an operator would tell them of it.
func (j *job) onHadoop(c *hadoop.Cluster) {
	j.env = append(j.env, "HADOOP_CONF_DIR="+c.ConfDir, "HADOOP_HOME="+c.Home(), "JAVA_HOME="+filepath.Dir(filepath.Dir(c.Java())), "HADOOP_USER_NAME="+superuser(c))
	if c.KDC != nil {
		j.env = append(j.env, c.KDC.Environ()...)
	}
}

func superuser(c *hadoop.Cluster) string {
	if c.KDC != nil {
		return "hdfs"
	}
	return "root"
}

// submit runs words of hbox-submit.
func (j *job) submit(words ...string) ending {
	j.t.Helper()
	return j.end(j.command(append([]string{"hbox-submit", "--app-id", j.app, "--work-dir", j.work, "--json"}, words...)...))
}

// put writes files below a folder of the cluster.
func (j *job) put(c *hadoop.Cluster, to string, files map[string]string) {
	j.t.Helper()
	j.lay(files)
	tops := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		tops[filepath.Join(j.store, top)] = true
	}
	args := []string{"-put"}
	for top := range tops {
		args = append(args, top)
	}
	c.FsShell(j.t, append(args, to)...)
}

// fsShell is Hadoop's own command in a process, by nothing but what muster told it.
const fsShell = `"$JAVA_HOME/bin/java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx64m $JAVA_ARGS -cp "$CLASSPATH" org.apache.hadoop.fs.FsShell `

// A process finds the classes, the configuration and the JVM of the host's Hadoop, whatever it is confined by; its inputs,
// files and archives come from HDFS, and it is told of others by their URLs.
func TestHadoop(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	j := newJob(t, 1, settings{})
	in := map[string]string{"in": "unpacked\n"}
	j.put(c, dir, map[string]string{
		"a/x": "1\n", "a/sub/y": "2\n", "b/x": "3\n", "lib/run.sh": "#!/bin/sh\necho ran\n", "lib/tree/z": "z\n",
		"lib/m.tgz": gzipped(t, tarred(t, in)), "lib/m.zip": zipped(t, in),
	})
	url := strings.TrimRight(c.URI, "/") + dir
	t.Run("processes", func(t *testing.T) {
		for _, engine := range []string{"auto", "process"} {
			t.Run(engine, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, 1, settings{
					"muster.command":    fsShell + `-cat "` + dir + `/a/x" > out/cat && ls "$LD_LIBRARY_PATH" > out/jvm && echo "$HADOOP_CONF_DIR $HADOOP_HOME $HADOOP_HDFS_HOME $HADOOP_USER_NAME" > out/env`,
					"muster.output.out": "out",
					"muster.restart":    "never",
				})
				j.onHadoop(c)
				j.run("--engine", engine, "--set", "worker:yarn.memory=512").succeeds(t)
				got := j.files(filepath.Join(j.store, "out"))
				if got["worker-0/cat"] != "1\n" || !strings.Contains(got["worker-0/jvm"], "libjvm.so") {
					t.Errorf("got %q", got)
				}
				if want := c.ConfDir + " " + c.Home() + " " + c.Home() + " root\n"; got["worker-0/env"] != want {
					t.Errorf("got %q, want %q", got["worker-0/env"], want)
				}
			})
		}
	})
	t.Run("PAI's folders", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{
			"global:muster.pai.version": "0.14", "global:muster.pai.code.dir": "${NN_URI}" + dir + "/lib", "global:muster.pai.output.dir": url + "/Output/job",
			"muster.command": `sh lib/run.sh > seen/ran && cat lib/tree/z > seen/z && echo "$PAI_OUTPUT_DIR" > seen/out`, "muster.output.seen": url + "/seen", "muster.restart": "never",
		})
		j.onHadoop(c)
		j.run("--default-fs", strings.TrimRight(c.URI, "/")).succeeds(t)
		c.FsShell(t, "-test", "-d", dir+"/Output/job")
		c.FsShell(t, "-get", dir+"/seen", j.store)
		j.same(j.files(filepath.Join(j.store, "seen")), map[string]string{"worker-0/ran": "ran\n", "worker-0/z": "z\n", "worker-0/out": url + "/Output/job\n", "_SUCCESS": ""})
	})
	t.Run("HBox's absolute paths", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{})
		j.onHadoop(c) // its fs.defaultFS
		j.submit("--worker-memory", "64", "--worker-num", "1", "--input", dir+"/a#data", "--cacheArchive", dir+"/lib/m.zip#zip",
			"--output", dir+"/of-hbox#model", "sh", "-c", `cat data/x zip/in >model/m; echo "$MUSTER_DEFAULT_FS" >model/fs`).succeeds(t)
		c.FsShell(t, "-get", dir+"/of-hbox", j.store)
		j.same(j.files(filepath.Join(j.store, "of-hbox")),
			map[string]string{"worker-0/m": "1\nunpacked\n", "worker-0/fs": strings.TrimRight(c.URI, "/") + "\n", "_SUCCESS": ""})
	})
	t.Run("authFile", func(t *testing.T) { authFile(t, c, dir, url) })
	t.Run("told of URLs", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 2, settings{
			"muster.command": `echo "$INPUT_FILE_LIST" > out/list`, "muster.inputs.strategy": "placeholder",
			"muster.input.data": url + "/a," + url + "/{a,b}/x,in/local", "muster.output.out": "out",
		})
		j.lay(map[string]string{"in/local": ""})
		j.onHadoop(c)
		j.run().succeeds(t)
		for i, want := range [][]string{{url + "/a/sub/y", url + "/b/x"}, {url + "/a/x", filepath.Join(j.store, "in/local")}} {
			var list map[string][]string
			text := read(filepath.Join(j.store, "out", "worker-"+string(rune('0'+i)), "list"))
			if err := json.Unmarshal([]byte(text), &list); err != nil || !slices.Equal(list["data"], want) {
				t.Errorf("worker-%d is told %s (%v), want %v", i, text, err, want)
			}
		}
	})
	t.Run("two of one name", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{"muster.command": "true", "muster.input.data": url + "/a," + url + "/b", "muster.restart": "never"})
		j.onHadoop(c)
		j.run().fails(t, "definition", 65, "input data", url+"/a/x and "+url+"/b/x", "muster.inputs.rename=true")
		if got := j.files(filepath.Join(j.work, "worker-0", "data")); len(got) > 0 {
			t.Errorf("there has come %v", got)
		}
	})
	t.Run("submission", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{})
		j.onHadoop(c)
		j.submit("--app-type", "caffe", "--worker-num", "2", "--worker-memory", "128m", "--input", url+"/a,"+url+"/b#data", "--isRenameInputFile", "true",
			"--cacheFile", url+"/lib/run.sh,"+dir+"/lib/tree#t", "--cacheArchive", url+"/lib/m.tgz,"+url+"/lib/m.zip#zip", "--output", url+"/out#out",
			"sh", "-c", "./run.sh > out/ran && cat m.tgz/in zip/in t/z > out/all && ls data | wc -l > out/n && echo own >> t/z").succeeds(t)
		c.FsShell(t, "-get", dir+"/out", j.store)
		got := j.files(filepath.Join(j.store, "out"))
		delete(got, "_SUCCESS")
		want := map[string]string{}
		for i, n := range []string{"2\n", "1\n"} {
			at := "worker-" + string(rune('0'+i)) + "/"
			want[at+"ran"], want[at+"all"], want[at+"n"] = "ran\n", "unpacked\nunpacked\nz\n", n
		}
		j.same(got, want)
		if log := j.log("worker-0") + j.log("worker-1"); !strings.Contains(log, "cached=true") || !strings.Contains(log, "cached=false") {
			t.Error("the second instance did not take the first one's from the cache")
		}
	})
}

// authFile has a PAI job log in at its image's registry by what lies on HDFS. The registry knows no image.
func authFile(t *testing.T, c *hadoop.Cluster, dir, url string) {
	t.Parallel()
	need.Root(t)
	var logins sync.Map
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, word, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		logins.Store(name+" "+word, true)
		http.NotFound(w, r)
	}))
	defer registry.Close()
	host := strings.TrimPrefix(registry.URL, "http://")
	j := newJob(t, 1, settings{})
	j.put(c, dir, map[string]string{"login": host + "\nann\nsecret\n"})
	j.onHadoop(c)
	text, err := json.Marshal(map[string]any{
		"jobName": j.app, "image": host + "/lab/x:1", "authFile": url + "/login",
		"taskRoles": []any{map[string]any{"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "command": "true"}},
	})
	j.must(err)
	file := filepath.Join(j.top, "job.json")
	j.must(os.WriteFile(file, text, 0o600))
	e := j.end(j.command("run", file, "--app-id", j.app, "--work-dir", j.work, "--json"))
	if _, ok := logins.Load("ann secret"); !ok || !strings.Contains(e.Cause+e.said, "not found") {
		t.Errorf("the registry has not heard of ann: %s\n%s", e.Cause, e.said)
	}
}

// A process has a ticket of its own, from the operator's cache or by a keytab, and gets another when that is renewed.
func TestTicketsOfAProcess(t *testing.T) {
	t.Parallel()
	c := hadoop.Start(t, hadoop.Options{Kerberos: true, Protection: "privacy"})
	keytab, cache := c.KDC.AddUser(t, "alice"), filepath.Join(t.TempDir(), "cc")
	c.KDC.Kinit(t, cache, "alice")
	short := c.KDC.AddUser(t, "gil")
	c.KDC.Life(t, "gil", "10 sec", "20 sec")
	c.FsShell(t, "-mkdir", "-p", "/a")
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		wait string // until there is another ticket
	}{
		{"ticket cache", []string{"KRB5CCNAME=FILE:" + cache}, nil, "yes"},
		{"keytab", nil, []string{"--kerberos-keytab", keytab, "--kerberos-principal", "alice"}, ""},
		{"keytab, and its ticket ends soon", nil, []string{"--kerberos-keytab", short, "--kerberos-principal", "gil"}, "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, 1, settings{
				"muster.command":      `stat -c %a "$KRB5CCNAME" > out/mode && JAVA_ARGS="-Djava.security.krb5.conf=$KRB5_CONFIG --add-opens=java.base/java.lang=ALL-UNNAMED" && ` + fsShell + `-ls -d /a > out/ls; cksum < "$KRB5CCNAME" > first; touch ready; [ -z "$WAIT" ] || until ! cksum < "$KRB5CCNAME" | cmp -s - first; do sleep 0.1; done`,
				"muster.output.out":   "out",
				"muster.restart":      "never",
				"muster.env.WAIT":     tt.wait,
				"muster.input.unread": "in",
			})
			j.lay(map[string]string{"in/x": ""})
			j.onHadoop(c)
			j.env = append(j.env, tt.env...)
			cmd := j.command(j.runArgs(append(tt.args, "--set", "worker:yarn.memory=512")...)...)
			end := j.begin(cmd)
			if tt.env != nil {
				await(t, "the process", func() bool {
					_, err := os.Stat(filepath.Join(j.work, "worker-0", "ready"))
					return err == nil
				})
				c.KDC.Kinit(t, cache, "alice")
			}
			end().succeeds(t)
			got := j.files(filepath.Join(j.store, "out"))
			if got["worker-0/mode"] != "600\n" || !strings.Contains(got["worker-0/ls"], " /a") {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("libhdfs", func(t *testing.T) {
		c.FsShell(t, "-chmod", "777", "/a")
		j := withArrow(t, c, hadoop.NeedNative(t, "../.."), "/a/one", "/a/two")
		j.put(c, "/a", map[string]string{"one": "1\n"})
		j.run("--kerberos-keytab", keytab, "--kerberos-principal", "alice", "--set", "worker:yarn.memory=1024").succeeds(t)
		if got := c.FsShell(t, "-cat", "/a/two") + c.FsShell(t, "-stat", "%u", "/a/two"); got != "1\n1\nalice\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a right that is taken away", func(t *testing.T) {
		j := newJob(t, 1, settings{"muster.command": "cat b", "muster.restart": "never", "muster.file.b": strings.TrimRight(c.URI, "/") + "/a/x"})
		j.put(c, "/a", map[string]string{"x": "1\n"})
		j.onHadoop(c)
		j.env = append(j.env, "KRB5CCNAME="+cache)
		j.run().succeeds(t)
		c.FsShell(t, "-chmod", "600", "/a/x") // the cache of files has it, and its time is the same
		j.app += "b"
		j.run().fails(t, "data", 69, "muster.file.b", "/a/x", "permission denied")
	})
}
