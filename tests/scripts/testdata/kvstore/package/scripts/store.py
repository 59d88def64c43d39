import os

from resource_management import *


class Store(Script):
    def install(self, env):
        self.install_packages(env)

    def configure(self, env):
        import params
        env.set_params(params)
        Directory([params.data_dir, params.conf_dir], recursive=True, owner=params.app_user)
        File(format("{conf_dir}/kvstore.conf"), content=Template("kvstore.conf.j2"), mode=0o644)
        PropertiesFile(format("{conf_dir}/kvstore.properties"), properties=params.site)
        XmlConfig("kvstore-site.xml", conf_dir=params.conf_dir, configurations=params.site)

    def start(self, env):
        import params
        self.configure(env)
        File(format("{data_dir}/sick"), action="delete")
        command = format("python3 {app_root}/store/server.py {conf_dir}/kvstore.conf >> {log_dir}/store.out 2>&1")
        Execute(command, wait_for_finish=False, pid_file=params.pid_file, poll_after=1)

    def stop(self, env):
        import params
        env.set_params(params)
        Execute(format("echo stopping >> {log_dir}/store.out; kill `cat {pid_file}`"), wait_for_finish=True)

    def status(self, env):
        import params
        env.set_params(params)
        check_process_status(params.pid_file)
        sick = format("{data_dir}/sick")
        if os.path.exists(sick):
            with open(sick) as f:
                raise Fail("the store is sick: " + f.read().strip())

    def count(self, env):
        import params
        env.set_params(params)
        Execute(format("python3 {app_root}/store/client.py {admin_port} COUNT"), logoutput=True)


if __name__ == "__main__":
    Store().execute()
