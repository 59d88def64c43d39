"""What the scripts are told: the command's configuration, and what the agent says in the environment."""

import os

from resource_management import *

config = Script.get_config()
site = config["configurations"]["global"]

component = config["componentName"]
hostname = config["hostname"]
container_id = site.get("app_container_id", "")
app_install_dir = site.get("app_install_dir")
# pid_file is for what START leaves behind. The program here is START itself, whose end is told without one.
pid_file = os.path.join(site.get("app_pid_dir"), "foreground")
seconds = config["commandParams"]["command_timeout"]

is_tensorboard = "tensorboard" in component.lower()
entry = site.get("user.scripts.entry", "")
data_dir = site.get("user.data.dir", "")


def port_of(name):
    """The port allocated to an instance of a component; empty where the configuration has none."""
    keys = ("tensor.board.port", "tensorboard.port") if is_tensorboard else (name + ".port",)
    return next((site.get(key) for key in keys if site.get(key)), "")


def checkpoints():
    """The folder of checkpoints: the agent's word, else as the configuration says it."""
    prefix = site.get("user.checkpoint.prefix", "")
    return (os.environ.get("MUSTER_CHECKPOINT_DIR") or site.get("user.checkpoint.dir", "")
            or (prefix and "{}/{}/checkpoints".format(prefix.rstrip("/"), config["serviceName"])))


port = port_of(component)
checkpoint_dir = checkpoints()

hadoop_conf = site.get("hadoop.conf", "")
user_name = site.get("user.name", "")
java_home = config["hostLevelParams"].get("java_home") or os.environ.get("JAVA_HOME", "")
