from resource_management import *

config = Script.get_config()

app_root = config['configurations']['global']['app_root']
pid_file = config['configurations']['global']['pid_file']
log_dir = config['configurations']['global']['app_log_dir']
conf_dir = config['configurations']['global']['app_conf_dir']
listen_port = config['configurations']['global']['listen_port']
admin_port = config['configurations']['global']['admin_port']
gateway_port = config['configurations']['global']['gateway_port']
greeting = config['configurations']['global']['greeting']
hostname = config['hostname']
site = config['configurations']['kvstore-site']
sorted_keys = sorted(site)
data_dir = site['store.data.dir']
verbose = site['store.verbose']
app_user = default('/configurations/global/app_user', 'nobody')
nice = default('nice', 0)
