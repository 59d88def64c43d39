package plan

import (
	"path"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Tokens of the built-in TensorFlow command, filled in by Finish. muster.tensorflow.args may use them.
const (
	tfPSHosts     = "{{tf.ps_hosts}}"
	tfWorkerHosts = "{{tf.worker_hosts}}"
	tfJobName     = "{{tf.job_name}}"
	tfTaskIndex   = "{{tf.task_index}}"
)

// tfServer is what all instances but the leader run in-graph: TensorFlow's own server at this member's position in the
// cluster of TF_CONFIG, until it is stopped. tf.train is TensorFlow 1's. An evaluator is not in the cluster and runs
// the script.
const tfServer = `import json, os
import tensorflow as tf
text = os.environ.get("TF_CONFIG")
if text is None:
    text = open(os.environ["TF_CONFIG_FILE"]).read()
config = json.loads(text)
train = tf.compat.v1.train if hasattr(tf, "compat") and hasattr(tf.compat, "v1") else tf.train
server = train.Server(train.ClusterSpec(config["cluster"]), job_name=config["task"]["type"],
                      task_index=config["task"]["index"], protocol="grpc")
print("serving", config["task"]["type"], config["task"]["index"], flush=True)
server.join()
`

// serves tells whether the instance runs a server for the one that runs the script: in-graph these are all parameter
// servers, and all chiefs and workers but the first.
func (b *builder) serves() bool {
	if !b.app.InGraph() {
		return false
	}
	return b.component.Settings.Role == appdef.RolePS || trains(b.component) &&
		!firstWorker(b.app, b.req.Component, b.req.Index)
}

// tensorflow is what Slider's TensorFlow package starts, without its docker: the user's script with the cluster on its
// command line, or TensorBoard for the checkpoints.
func (b *builder) tensorflow() []string {
	if b.component.Settings.Role == appdef.RoleService {
		return b.tensorboard()
	}
	entry := b.site("user.scripts.entry")
	if entry == "" {
		b.problem(b.key("site.global.user.scripts.entry"), "no script to run",
			"site.global.user.scripts.entry or muster.command",
			"the entry is relative to package/files")
		return []string{}
	}
	install := path.Join(b.req.root(), "app/install")
	if !path.IsAbs(entry) {
		entry = path.Join(install, entry)
	}
	return append([]string{b.python(), entry}, b.tensorflowArgs(install)...)
}

func (b *builder) tensorflowArgs(install string) []string {
	if own := b.component.Settings.TFArgs; own != nil {
		args, err := words(b.text("muster.tensorflow.args", *own))
		if err != nil {
			b.problem(b.key("muster.tensorflow.args"), appdef.Quote(*own), "arguments as a shell reads them",
				err.Error())
		}
		return args
	}
	args := []string{
		"--ps_hosts=" + tfPSHosts, "--worker_hosts=" + tfWorkerHosts,
		"--job_name=" + tfJobName, "--task_index=" + tfTaskIndex,
		"--ckp_dir=" + b.checkpointDir(), "--work_dir=" + install,
	}
	if data := b.site("user.data.dir"); data != "" {
		args = append(args, "--data_dir="+data)
	}
	return args
}

// tensorboard runs the TensorBoard of the component's Python. It serves all addresses, because its export names this
// host.
func (b *builder) tensorboard() []string {
	if !strings.Contains(strings.ToLower(b.component.Name), "tensorboard") {
		b.problem(b.at("command_script"), "service "+b.component.Name+" with a commandScript",
			"muster.command", "only tensorboard has a built-in command among the services")
		return []string{}
	}
	port := firstPort(b.ports)
	if port == "" {
		b.problem(b.at(), "no port", "a site.global key with ${"+b.component.Name+".ALLOCATED_PORT}",
			"TensorBoard serves on it")
		return []string{}
	}
	return []string{
		b.python(), "-m", "tensorboard.main", "--logdir=" + b.checkpointDir(), "--bind_all",
		"--port=" + portToken + port + "}}",
	}
}
