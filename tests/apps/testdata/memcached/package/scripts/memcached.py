from resource_management import *


class Memcached(Script):
    def install(self, env):
        self.install_packages(env)

    def start(self, env):
        import params
        env.set_params(params)
        Execute(format("{java_home}/bin/java -Xmx{xmx_val} -Xms{xms_val} {jvm_options} -classpath '{app_root}/*' "
                       "com.thimbleware.jmemcached.Main --memory={memory_val} --port={port}"),
                logoutput=False,
                wait_for_finish=False,
                pid_file=params.pid_file,
                poll_after=1)

    def stop(self, env):
        import params
        env.set_params(params)
        Execute(format("kill `cat {pid_file}`"))

    def status(self, env):
        import params
        env.set_params(params)
        check_process_status(params.pid_file)


if __name__ == "__main__":
    Memcached().execute()
