from resource_management import *

config = Script.get_config()
settings = config['configurations']['global']
broker = config['configurations']['server']
zoo = config['configurations']['zoo']

java = config['hostLevelParams']['java_home'] + "/bin/java"
hostname = config['hostname']
app_root = settings['app_root']
conf_dir = settings['app_conf_dir']
log_dir = settings['app_log_dir']
pid_file = settings['pid_file']
xmx_val = settings['xmx_val']
xms_val = settings['xms_val']
jvm_options = default('/configurations/global/jvm_options', '')
