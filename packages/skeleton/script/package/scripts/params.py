"""What the scripts know: the settings of appConfig, under site.global, and where things lie."""
from resource_management import *

config = Script.get_config()
settings = config["configurations"]["global"]

install_dir = settings["app_install_dir"]
conf_dir = install_dir + "/conf"
pid_file = settings["app_pid_dir"] + "/worker.pid"
steps = settings["work.steps"]
port = settings["worker.port"]
