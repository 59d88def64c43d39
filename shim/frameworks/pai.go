package frameworks

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// The versions of PAI that differ, as plan.PAI.Version names them.
const (
	pai05 = "0.5"
	pai1  = "1"
)

// pai sets the variables that PAI sets for a task, as PAI_X and as QIZHI_X.
//
// Every task gets the names of all versions: a script for an older version keeps working, as it did in PAI's own
// compatibility part. Three variables contradict each other and follow the version. HOST_LIST by a role's number is
// 0.5's (later a role may be called 0). KILL_ALL_ON_COMPLETED_TASK_NUM ended with 0.5. Only a job that can set the
// counts of failed and succeeded tasks gets them.
//
// JOB_NAME is the job's own name, as in all manuals; where PAI writes user~job it stands in FRAMEWORK_NAME. A role or
// label with . or ~ or -, which no shell can name, is also written with _, unless another variable has that name.
//
// Env lays jobEnvs over all of these.
func pai(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	t := &paiTeller{job: *p.PAI, plan: p, env: map[string]string{}, spelt: map[string]string{}}
	for _, role := range t.job.Roles {
		t.tasks = append(t.tasks, tasksOf(r, role.Name))
	}
	t.aboutJob()
	t.aboutRoles()
	t.aboutTasks()
	t.aboutMe()
	for name, value := range t.spelt {
		if _, taken := t.env[name]; !taken {
			t.env[name] = value
		}
	}
	for name, value := range t.env {
		env["PAI_"+name], env["QIZHI_"+name] = value, value
	}
	maps.Copy(env, map[string]string{
		"APP_ID": p.App.ID, "FRAMEWORK_NAME": t.framework(), "HADOOP_USER_NAME": t.job.User,
		"CONTAINER_ID": t.container(),
	})
	if t.job.Version == pai1 {
		maps.Copy(env, t.controller())
	}
	return env, files
}

// paiTeller collects the environment of one task.
type paiTeller struct {
	job   plan.PAI
	plan  plan.Plan
	tasks [][]registry.Row // by role, in index order
	env   map[string]string
	spelt map[string]string // names with _ for characters that a shell cannot name
}

func tasksOf(r registry.Roster, role string) []registry.Row {
	var rows []registry.Row
	for _, row := range r.Rows {
		if row.Component == role {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b registry.Row) int { return cmp.Compare(a.Index, b.Index) })
	return rows
}

// set sets a variable whose name may contain names of the job.
func (t *paiTeller) set(name, value string) {
	t.env[name] = value
	if spelt := strings.NewReplacer(".", "_", "~", "_", "-", "_").Replace(name); spelt != name {
		t.spelt[spelt] = value
	}
}

// count is the number of tasks of a role: by the roster, or by the job if there is no roster yet.
func (t *paiTeller) count(role int) int {
	if slices.ContainsFunc(t.tasks, func(rows []registry.Row) bool { return len(rows) > 0 }) {
		return len(t.tasks[role])
	}
	return t.job.Roles[role].Tasks
}

// framework is the job's name in PAI's launcher.
func (t *paiTeller) framework() string { return t.job.User + "~" + t.job.Job }

func (t *paiTeller) container() string {
	return cmp.Or(t.plan.Allocation.ContainerID, registry.Instance{
		Component: t.plan.Who.Component,
		Index:     t.plan.Who.Index,
	}.String())
}

func (t *paiTeller) aboutJob() {
	names, total := make([]string, len(t.job.Roles)), 0
	for i, role := range t.job.Roles {
		names[i] = role.Name
		total += t.count(i)
	}
	list, roles, tasks := strings.Join(names, ","), strconv.Itoa(len(names)), strconv.Itoa(total)
	maps.Copy(t.env, map[string]string{
		"JOB_NAME": t.job.Job, "FRAMEWORK_NAME": t.framework(), "USER_NAME": t.job.User, "USERNAME": t.job.User,
		"DEFAULT_FS_URI": whole(t.job.DefaultFS), "DATA_DIR": whole(t.job.DataDir),
		"OUTPUT_DIR": whole(t.job.OutputDir), "CODE_DIR": whole(t.job.CodeDir),
		"JOB_VC_NAME": t.job.VirtualCluster, "VIRTUAL_CLUSTER": t.job.VirtualCluster,
		"JOB_TASK_ROLE_LIST": list, "TASK_ROLE_LIST": list,
		"JOB_TASK_ROLE_COUNT": roles, "TASK_ROLE_COUNT": roles, "TASK_ROLES_NUM": roles,
		"JOB_TASK_COUNT": tasks, "TASKS_NUM": tasks,
		"WORK_DIR": t.plan.Process.Cwd, "CONTAINER_ID": t.container(),
	})
	if t.job.Version == pai05 {
		t.env["KILL_ALL_ON_COMPLETED_TASK_NUM"] = strconv.Itoa(t.job.KillAll)
	}
}

// counted prints minFailedTaskCount and the like. Null is nothing, and in PAI 1 -1.
func (t *paiTeller) counted(n *int) string {
	switch {
	case n != nil:
		return strconv.Itoa(*n)
	case t.job.Version == pai1:
		return "-1"
	}
	return ""
}

// resource is a role's share of each host: GPUs, cores, memory and shared memory in MB.
func resource(r plan.PAIRole) string {
	return strings.Join([]string{
		strconv.Itoa(r.GPUs), strconv.Itoa(r.CPUs), strconv.Itoa(r.MemoryMB),
		strconv.Itoa(r.ShmMB),
	}, ",")
}

func (t *paiTeller) aboutRoles() {
	var instances []string
	for i, role := range t.job.Roles {
		t.set("TASK_ROLE_TASK_COUNT_"+role.Name, strconv.Itoa(t.count(i)))
		t.set("RESOURCE_"+role.Name, resource(role))
		if t.job.Version != pai05 {
			t.set("MIN_FAILED_TASK_COUNT_"+role.Name, t.counted(role.MinFailed))
			t.set("MIN_SUCCEEDED_TASK_COUNT_"+role.Name, t.counted(role.MinSucceeded))
		}
		hosts := make([]string, len(t.tasks[i]))
		for n, row := range t.tasks[i] {
			hosts[n] = paiAddress(row, firstPort(row, role, "http"))
			instances = append(instances, role.Name+":"+strconv.Itoa(row.Index))
		}
		if number := strconv.Itoa(i); t.job.Version == pai05 &&
			!slices.ContainsFunc(t.job.Roles, func(r plan.PAIRole) bool {
				return r.Name == number
			}) {
			t.set("TASK_ROLE_"+number+"_HOST_LIST", strings.Join(hosts, ","))
		}
		t.set("TASK_ROLE_"+role.Name+"_HOST_LIST", strings.Join(hosts, ","))
	}
	t.env["TASK_ROLE_INSTANCES"] = strings.Join(instances, ",")
}

func (t *paiTeller) aboutTasks() {
	for i, role := range t.job.Roles {
		for _, row := range t.tasks[i] {
			task := role.Name + "_" + strconv.Itoa(row.Index)
			t.set("HOST_IP_"+task, paiHost(row))
			for _, port := range role.Ports {
				list := portList(row, role, port.Label)
				t.set("PORT_LIST_"+task+"_"+port.Label, list)
				t.set(task+"_"+port.Label+"_PORT", list)
			}
		}
	}
}

// aboutMe describes this task; a service is no task.
func (t *paiTeller) aboutMe() {
	who := t.plan.Who
	i := slices.IndexFunc(t.job.Roles, func(r plan.PAIRole) bool { return r.Name == who.Component })
	if i < 0 {
		return
	}
	role, index := t.job.Roles[i], strconv.Itoa(who.Index)
	maps.Copy(t.env, map[string]string{
		"CURRENT_TASK_ROLE_NAME": role.Name, "TASK_ROLE_NAME": role.Name,
		"CURRENT_TASK_ROLE_TASK_COUNT": strconv.Itoa(t.count(i)), "TASK_ROLE_NUM": strconv.Itoa(t.count(i)),
		"CURRENT_TASK_ROLE_CPU_COUNT": strconv.Itoa(role.CPUs), "TASK_CPU_NUM": strconv.Itoa(role.CPUs),
		"CURRENT_TASK_ROLE_MEM_MB": strconv.Itoa(role.MemoryMB), "TASK_MEM_MB": strconv.Itoa(role.MemoryMB),
		"CURRENT_TASK_ROLE_GPU_COUNT": strconv.Itoa(role.GPUs), "TASK_GPU_NUM": strconv.Itoa(role.GPUs),
		"CURRENT_TASK_ROLE_SHM_MB": strconv.Itoa(role.ShmMB), "RESOURCE": resource(role),
		"TASK_INDEX": index, "CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": index, "TASK_ROLE_INDEX": index,
	})
	if t.job.Version != pai05 {
		t.env["CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT"] = t.counted(role.MinFailed)
		t.env["CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT"] = t.counted(role.MinSucceeded)
	}
	at := plan.Place(t.tasks[i], who.Component, who.Index)
	if at < 0 {
		return
	}
	row := t.tasks[i][at]
	if t.job.Version == pai05 { // a position in the list; the launcher's own number is TASK_INDEX
		t.env["CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"], t.env["TASK_ROLE_INDEX"] = strconv.Itoa(at), strconv.Itoa(at)
	}
	t.aboutPorts(role, row)
}

func (t *paiTeller) aboutPorts(role plan.PAIRole, row registry.Row) {
	t.env["CONTAINER_HOST_IP"], t.env["CURRENT_CONTAINER_IP"] = paiHost(row), paiHost(row)
	var all strings.Builder
	for _, port := range role.Ports {
		list := portList(row, role, port.Label)
		all.WriteString(port.Label + ":" + list + ";") // also after the last one
		t.set("CONTAINER_HOST_"+port.Label+"_PORT_LIST", list)
		t.set("CONTAINER_HOST__"+port.Label+"_PORT_LIST", list) // as the manuals print it
	}
	t.env["CONTAINER_HOST_PORT_LIST"] = all.String()
	t.env["CONTAINER_HOST_PORT"] = firstPort(row, role, "http")
	t.env["CURRENT_CONTAINER_PORT"] = t.env["CONTAINER_HOST_PORT"]
	t.env["CONTAINER_SSH_PORT"] = firstPort(row, role, "ssh")
}

// controller are the variables of PAI 1's controller.
func (t *paiTeller) controller() map[string]string {
	return map[string]string{
		"GANG_ALLOCATION": "true", "FC_FRAMEWORK_NAME": t.framework(),
		"FC_TASKROLE_NAME": t.plan.Who.Component, "FC_TASK_INDEX": strconv.Itoa(t.plan.Who.Index),
	}
}

func paiHost(row registry.Row) string { return plan.Hosts([]registry.Row{row})[0] }

// paiAddress is host:port; an IPv6 host needs its brackets there.
func paiAddress(row registry.Row, port string) string {
	host := paiHost(row)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// portList are a task's ports of one label with commas between, as PAI prints them.
func portList(row registry.Row, role plan.PAIRole, label string) string {
	i := slices.IndexFunc(role.Ports, func(p plan.PAIPort) bool { return p.Label == label })
	if i < 0 {
		return ""
	}
	numbers := make([]string, len(role.Ports[i].Names))
	for n, name := range role.Ports[i].Names {
		numbers[n] = strconv.Itoa(row.Ports[name])
	}
	return strings.Join(numbers, ",")
}

func firstPort(row registry.Row, role plan.PAIRole, label string) string {
	first, _, _ := strings.Cut(portList(row, role, label), ",")
	return first
}

// whole writes file:/PATH as file:///PATH: some programs read the short form as a relative path.
func whole(uri string) string {
	if rest, ok := strings.CutPrefix(uri, "file:/"); ok && !strings.HasPrefix(rest, "/") {
		return "file:///" + rest
	}
	return uri
}
