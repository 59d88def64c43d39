from resource_management import *

config = Script.get_config()
settings = config['configurations']['global']

java_home = config['hostLevelParams']['java_home']
app_root = settings['app_root']
tomcat_home = app_root + "/apache-tomcat-10.1.44"
tomcat_pid = app_root + "/catalina.pid"
webapps_dir = app_root + "/webapps"
resources_dir = app_root + "/../resources"
data_dir = settings['data_dir']
log_dir = settings['app_log_dir']
xmx_val = settings['xmx_val']
xms_val = settings['xms_val']
jvm_options = default('/configurations/global/jvm_options', '')
http_port = config['configurations']['server-xml']['http.port']
connection_timeout = config['configurations']['server-xml']['connection.timeout']
