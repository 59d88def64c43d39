from resource_management import *


class Daemon(Script):
    """What ZooKeeper and Kafka share: a class of Java's with a file of properties."""

    name = main = None

    def properties(self, params):
        raise NotImplementedError

    def install(self, env):
        self.install_packages(env)

    def configure(self, env):
        import params
        env.set_params(params)
        Directory(params.conf_dir, recursive=True)
        File(format("{conf_dir}/log4j.properties"), content=Template("log4j.properties.j2", daemon=self.name))
        PropertiesFile(format("{conf_dir}/{self.name}.properties"), properties=self.properties(params))

    def start(self, env):
        import params
        self.configure(env)
        Execute(format("exec {java} -Xmx{xmx_val} -Xms{xms_val} {jvm_options} -Dlog4j.configuration=file:{conf_dir}/log4j.properties "
                       "-cp '{app_root}/libs/*' {self.main} {conf_dir}/{self.name}.properties"),
                wait_for_finish=False,
                pid_file=params.pid_file,
                poll_after=1)

    def stop(self, env):
        import params
        env.set_params(params)
        Execute(format("kill `cat {pid_file}`"))

    def status(self, env):
        import params
        check_process_status(params.pid_file)
