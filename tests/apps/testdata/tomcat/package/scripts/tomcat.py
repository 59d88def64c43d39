import os
import shutil

from resource_management import *


class Tomcat(Script):
    def install(self, env):
        self.install_packages(env)

    def configure(self, env):
        import params
        env.set_params(params)
        Directory([params.data_dir, params.webapps_dir], recursive=True)
        File(format("{tomcat_home}/conf/server.xml"), content=Template("server.xml.j2"))
        for name in os.listdir(params.resources_dir):
            if name.endswith(".war"):
                shutil.copy(os.path.join(params.resources_dir, name), params.webapps_dir)

    def catalina(self, command):
        Execute(format("env JAVA_HOME={java_home} CATALINA_PID={tomcat_pid} CATALINA_OUT={log_dir}/catalina.out "
                       "CATALINA_OPTS='-Xmx{xmx_val} -Xms{xms_val} {jvm_options} -Ddata.dir={data_dir}' "
                       "{tomcat_home}/bin/catalina.sh {command}"))

    def start(self, env):
        self.configure(env)
        self.catalina("start")

    def stop(self, env):
        import params
        env.set_params(params)
        self.catalina("stop 10 -force")

    def status(self, env):
        import params
        check_process_status(params.tomcat_pid)


if __name__ == "__main__":
    Tomcat().execute()
