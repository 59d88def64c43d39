from resource_management import *

config = Script.get_config()
settings = config['configurations']['global']

java_home = config['hostLevelParams']['java_home']
app_root = settings['app_root']
pid_file = settings['pid_file']
port = settings['listen_port']
xmx_val = settings['xmx_val']
xms_val = settings['xms_val']
memory_val = settings['memory_val']
jvm_options = default('/configurations/global/jvm_options', '')
