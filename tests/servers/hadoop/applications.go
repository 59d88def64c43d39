package hadoop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// get reads an answer of the ResourceManager's REST.
func (y *YARN) get(path string, into any) error {
	return y.ask(http.MethodGet, path, nil, into)
}

func (y *YARN) ask(method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+y.RM+path+"?user.name="+Nobody, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if y.show != nil {
		if err := y.show(req); err != nil {
			return err
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// Clients is the environment, NAME=VALUE, by which a person's programs find YARN and its HDFS, as the ordinary user.
func (y *YARN) Clients() []string {
	if y.tickets != "" {
		return append(y.java(), "HADOOP_CONF_DIR="+y.ConfDir, "KRB5CCNAME="+y.tickets)
	}
	return []string{"HADOOP_CONF_DIR=" + y.ConfDir, "HADOOP_USER_NAME=" + Nobody}
}

// Command is a class of Hadoop's as a client of YARN, as the ordinary user; not started yet.
func (y *YARN) Command(class string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(y.t.Context(), y.c.home.java,
		append(y.c.home.yarnArgs("160m", y.ConfDir, class, "-Dmuster.log=INFO"), args...)...)
	cmd.Env = append(y.c.Environ(), y.Clients()...)
	return cmd
}

var submitted = regexp.MustCompile(`Submitted application (application_\d+_\d+)`)

// DistributedShell runs a command line in so many containers by YARN's distributed shell, with further options of its
// client, and returns the application's id while it runs.
func (y *YARN) DistributedShell(command string, containers int, options ...string) (application string) {
	y.t.Helper()
	jar, err := filepath.Glob(filepath.Join(y.c.home.dir, "lib", "hadoop-yarn-applications-distributedshell-*.jar"))
	if err != nil || len(jar) == 0 {
		y.t.Fatalf("no distributed shell in %s: %v", y.c.home.dir, err)
	}
	script := filepath.Join(y.Dir, "command.sh")
	if err := os.WriteFile(script, []byte(command+"\n"), 0o755); err != nil { //nolint:gosec // it is run
		y.t.Fatal(err)
	}
	cmd := y.Command(shellClass, append([]string{
		"-jar", jar[0], "-shell_script", script, "-num_containers", fmt.Sprint(containers),
		"-container_memory", "128", "-master_memory", "256", "-appname", "shell",
	}, options...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		y.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	var said bytes.Buffer
	for part := make([]byte, 4096); ; {
		n, err := out.Read(part)
		said.Write(part[:n])
		if m := submitted.FindSubmatch(said.Bytes()); m != nil {
			application = string(m[1])
			break
		}
		if err != nil {
			y.t.Fatalf("distributed shell: %v\n%s", cmd.Wait(), said.Bytes())
		}
	}
	_ = cmd.Process.Kill() // the application runs without its client
	_ = cmd.Wait()
	return application
}

// SubmitService submits a service definition (JSON) to YARN's service API, and returns its application's id.
func (y *YARN) SubmitService(definition string) (application string) {
	y.t.Helper()
	var about struct{ Name string }
	if err := json.Unmarshal([]byte(definition), &about); err != nil {
		y.t.Fatal(err)
	}
	if err := y.ask(http.MethodPost, "/app/v1/services", []byte(definition), nil); err != nil {
		y.t.Fatal(err)
	}
	return y.Service(about.Name).ID
}

// Service is what the service API tells of a service.
type Service struct {
	ID string
	// State is ACCEPTED, STARTED, STABLE, STOPPED, FAILED, FLEX, SUCCEEDED, …
	State      string
	Components []struct {
		Name, State string
		Containers  []ServiceContainer
	}
}

// ServiceContainer is a container of a service.
type ServiceContainer struct {
	ID, State string
	Instance  string `json:"component_instance_name"`
}

// Service asks for a service by its name.
func (y *YARN) Service(name string) Service {
	y.t.Helper()
	var s Service
	if err := y.get("/app/v1/services/"+name, &s); err != nil {
		y.t.Fatal(err)
	}
	return s
}

// StopService ends a service's containers; its definition stays, and its name is taken.
func (y *YARN) StopService(name string) {
	y.t.Helper()
	if err := y.ask(http.MethodPut, "/app/v1/services/"+name, []byte(`{"state":"STOPPED"}`), nil); err != nil {
		y.t.Fatal(err)
	}
}

// StartService starts a service again that was stopped or killed, by the definition that YARN has kept, and returns its
// new application's id.
func (y *YARN) StartService(name string) (application string) {
	y.t.Helper()
	if err := y.ask(http.MethodPut, "/app/v1/services/"+name, []byte(`{"state":"STARTED"}`), nil); err != nil {
		y.t.Fatal(err)
	}
	return y.Service(name).ID
}

// DestroyService ends a service and forgets it.
func (y *YARN) DestroyService(name string) {
	y.t.Helper()
	if err := y.ask(http.MethodDelete, "/app/v1/services/"+name, nil, nil); err != nil {
		y.t.Fatal(err)
	}
}

// Application is what the ResourceManager tells of one.
type Application struct {
	ID, Name, User string
	// State is NEW, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED or KILLED.
	State string
	// FinalStatus is UNDEFINED, SUCCEEDED, FAILED or KILLED.
	FinalStatus, Diagnostics string
	RunningContainers        int
	Queue                    string
	Priority                 int
}

// Placed is a container, and the host that it is on.
type Placed struct {
	ContainerID string
	// Node is the number of its NodeManager.
	Node int
}

// Containers are those that run of an application's first attempt, the master's too, as the ResourceManager has them.
func (y *YARN) Containers(id string) []Placed {
	y.t.Helper()
	attempt := strings.Replace(id, "application_", "appattempt_", 1) + "_000001"
	var answer struct {
		Container []struct{ ContainerID, AssignedNodeID, ContainerState string }
	}
	if err := y.get("/ws/v1/cluster/apps/"+id+"/appattempts/"+attempt+"/containers", &answer); err != nil {
		y.t.Fatal(err)
	}
	var all []Placed
	for _, one := range answer.Container {
		at := slices.IndexFunc(y.nodes, func(n *nodeManager) bool { return one.AssignedNodeID == local(n.ports[0]) })
		if at < 0 {
			y.t.Fatalf("container %+v is on no host of ours", one)
		}
		if one.ContainerState == "RUNNING" {
			all = append(all, Placed{one.ContainerID, at})
		}
	}
	return all
}

// label gives NodeManagers their labels.
func (y *YARN) label() {
	y.t.Helper()
	for i, name := range y.options.Labels {
		made := fmt.Appendf(nil, `{"nodeLabelInfo":[{"name":%q,"exclusivity":true}]}`, name)
		given := fmt.Appendf(nil, `{"nodeToLabels":[{"nodeId":%q,"labels":[%q]}]}`, local(y.nodes[i].ports[0]), name)
		if err := errors.Join(y.ask(http.MethodPost, "/ws/v1/cluster/add-node-labels", made, nil),
			y.ask(http.MethodPost, "/ws/v1/cluster/replace-node-to-labels", given, nil)); err != nil {
			y.t.Fatal(err)
		}
	}
}

// Application asks for one by its id.
func (y *YARN) Application(id string) Application {
	y.t.Helper()
	var answer struct{ App Application }
	if err := y.get("/ws/v1/cluster/apps/"+id, &answer); err != nil {
		y.t.Fatal(err)
	}
	return answer.App
}

// Applications are all that the ResourceManager knows.
func (y *YARN) Applications() []Application {
	y.t.Helper()
	var answer struct{ Apps struct{ App []Application } }
	if err := y.get("/ws/v1/cluster/apps", &answer); err != nil {
		y.t.Fatal(err)
	}
	return answer.Apps.App
}

// Attempts is how many attempts its master has had.
func (y *YARN) Attempts(id string) int {
	y.t.Helper()
	var answer struct {
		AppAttempts struct{ AppAttempt []json.RawMessage }
	}
	if err := y.get("/ws/v1/cluster/apps/"+id+"/appattempts", &answer); err != nil {
		y.t.Fatal(err)
	}
	return len(answer.AppAttempts.AppAttempt)
}

// Await waits until see says yes to an application, and returns it. The ResourceManager tells nobody of changes: it is
// asked.
func (y *YARN) Await(id, what string, see func(Application) bool) Application {
	y.t.Helper()
	var app Application
	err := y.rm.Await(yarnWatchdog, func() error {
		if app = y.Application(id); !see(app) {
			return fmt.Errorf("waited for %s; %s is %+v", what, id, app)
		}
		return nil
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return app
}

// AwaitEnd waits until an application has ended in whatever way.
func (y *YARN) AwaitEnd(id string) Application {
	y.t.Helper()
	return y.Await(id, "its end", func(a Application) bool {
		return a.State == "FINISHED" || a.State == "FAILED" || a.State == "KILLED"
	})
}

// Kill ends an application, as `yarn application -kill` does.
func (y *YARN) Kill(id string) {
	y.t.Helper()
	if err := y.ask(http.MethodPut, "/ws/v1/cluster/apps/"+id+"/state", []byte(`{"state":"KILLED"}`), nil); err != nil {
		y.t.Fatal(err)
	}
}

// AwaitNoContainer waits until no process of an application is left on any node: what is killed gets TERM and 250 ms.
func (y *YARN) AwaitNoContainer(id string) {
	y.t.Helper()
	err := y.rm.Await(watchdog, func() error {
		for container := range y.LogFolders(id) {
			if pids := y.ContainerProcesses(container); len(pids) > 0 {
				return fmt.Errorf("%s has processes %v", container, pids)
			}
		}
		return nil
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// LogFolders are the folders of an application's containers with their logs, by container, on all nodes; that of its
// master among them.
func (y *YARN) LogFolders(id string) map[string]string {
	y.t.Helper()
	found, err := filepath.Glob(filepath.Join(y.Dir, "node-*", "logs", id, "container_*"))
	if err != nil {
		y.t.Fatal(err)
	}
	folders := map[string]string{}
	for _, folder := range found {
		folders[filepath.Base(folder)] = folder
	}
	return folders
}

// Logs is all that an application's containers wrote into their log folders, for a test's own failure.
func (y *YARN) Logs(id string) string {
	var b strings.Builder
	for container, folder := range y.LogFolders(id) {
		files, _ := filepath.Glob(filepath.Join(folder, "*"))
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err == nil && len(text) > 0 {
				fmt.Fprintf(&b, "== %s/%s\n%s\n", container, filepath.Base(path), text[max(0, len(text)-4000):])
			}
		}
	}
	return b.String()
}
