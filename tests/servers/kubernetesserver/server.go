// Package kubernetesserver starts a real Kubernetes of one node for tests: API, controllers, JobSet, scheduler and
// kubelet (tests/servers/kubernetes). Enters a test; leaves a cluster that takes objects, tells what becomes of them,
// and is gone when the test ends, however it ends, with all that its pods run and mounted. The program comes from
// `scripts/lab/kubernetes build`; without it, and with -short, the test is skipped (package need).
package kubernetesserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/jail"
)

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 2 * time.Minute

// Server is one cluster. Its methods end the test on errors.
type Server struct {
	// Dir holds the program's log and, in `logs`, those of pods.
	Dir string

	t           testing.TB
	base, token string
	client      *http.Client
	run         *jail.Process
}

// Object is the part of a Job, a JobSet or a Pod that tests look at.
type Object struct {
	Metadata struct {
		Name, UID         string
		Labels            map[string]string
		DeletionTimestamp string
	}
	Status struct {
		Phase             string // of a pod
		Failed, Succeeded int    // of a Job
		Restarts          int    // of a JobSet
		Conditions        []Condition
		ContainerStatuses []struct {
			State struct {
				Terminated *struct {
					ExitCode int
					Reason   string
				}
			}
		}
	}
}

// Condition is one of an object's, as Failed of a Job.
type Condition struct{ Type, Status, Reason, Message string }

// Condition is the object's of that type when it is true.
func (o Object) Condition(kind string) (Condition, bool) {
	for _, c := range o.Status.Conditions {
		if c.Type == kind && c.Status == "True" {
			return c, true
		}
	}
	return Condition{}, false
}

// Start starts a cluster and returns once it takes objects.
func Start(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Kubernetes: not with -short")
	}
	need.Root(t)
	lab := filepath.Join("..", "..", "..", "scripts", "lab", "kubernetes")
	var words []string
	for _, what := range []string{"where", "jobset"} {
		path, err := exec.CommandContext(t.Context(), lab, what).Output()
		if err == nil {
			words = append(words, strings.TrimSpace(string(path)))
			_, err = os.Stat(words[len(words)-1])
		}
		if err != nil {
			need.Skip(t, fmt.Sprintf("no Kubernetes (make it with scripts/lab/kubernetes build): %s: %v", what, err))
		}
	}
	s := &Server{Dir: t.TempDir(), t: t}
	log := filepath.Join(s.Dir, "kubernetes.log")
	cmd := exec.Command(words[0], s.Dir, words[1])
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=1GiB", "GOMAXPROCS=2")
	t.Cleanup(func() {
		if t.Failed() && s.run != nil {
			t.Logf("the end of %s:\n%s", log, s.run.LogTail())
		}
	})
	run, err := jail.New(t).Start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	s.run = run
	if err := s.run.Await(watchdog, s.open); err != nil {
		t.Fatal(err)
	}
	return s
}

// open reads the cluster's kubeconfig, which is there when it takes objects.
func (s *Server) open() error {
	text, err := os.ReadFile(filepath.Join(s.Dir, "kubeconfig"))
	if err != nil {
		return err
	}
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     string `yaml:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	s.base, s.token = c.Clusters[0].Cluster.Server, c.Users[0].User.Token
	ca, err := base64.StdEncoding.DecodeString(c.Clusters[0].Cluster.CA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("no certificate in the kubeconfig")
	}
	trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	return nil
}

// kinds are the paths of what tests create and look at.
var kinds = map[string]string{
	"Service": "/api/v1/namespaces/default/services", "Pod": "/api/v1/namespaces/default/pods",
	"Job": "/apis/batch/v1/namespaces/default/jobs", "Secret": "/api/v1/namespaces/default/secrets",
	"JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
}

// Create has the API take each document of a rendering, as strictly as `kubectl create` has it.
func (s *Server) Create(text string) error {
	s.t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		kind, _ := doc["kind"].(string)
		body, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		if err := s.ask(http.MethodPost, kinds[kind]+"?fieldValidation=Strict", body); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
}

// Delete removes an object and, before it, what belongs to it.
func (s *Server) Delete(kind, name string) {
	s.t.Helper()
	if err := s.ask(http.MethodDelete, kinds[kind]+"/"+name, []byte(`{"propagationPolicy":"Background"}`)); err != nil {
		s.t.Fatal(err)
	}
}

// Evict takes a pod away, as the draining of a node does.
func (s *Server) Evict(name string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, name)
	if err := s.ask(http.MethodPost, kinds["Pod"]+"/"+name+"/eviction", []byte(body)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16)) // the status says that it failed
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return answer, nil
}

func (s *Server) ask(method, path string, body []byte) error {
	answer, err := s.request(s.t.Context(), method, path, body)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Await watches all objects of a kind, each by its name, until see says yes to them, and returns them. Those that were
// deleted stay as they were last.
func (s *Server) Await(kind, what string, see func(all map[string]Object) bool) map[string]Object {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), watchdog)
	defer cancel()
	all := map[string]Object{}
	answer, err := s.request(ctx, http.MethodGet, kinds[kind]+"?watch=true", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	for d := json.NewDecoder(answer.Body); ; {
		var event struct{ Object Object }
		if err := d.Decode(&event); err != nil {
			s.t.Fatalf("not seen within %s: %s: %v\n%+v", watchdog, what, err, all)
		}
		all[event.Object.Metadata.Name] = event.Object
		if see(all) {
			return all
		}
	}
}

// Log is what the pods whose names begin so have written so far.
func (s *Server) Log(prefix string) string {
	pattern := filepath.Join(s.Dir, "logs", "default_"+prefix+"*", "*", "*.log")
	found, _ := filepath.Glob(pattern) // only a bad pattern is an error
	var b strings.Builder
	for _, path := range found {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s:\n%s", path, text)
	}
	return b.String()
}
