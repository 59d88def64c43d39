"""The commands of the component worker, as Slider's agent knows them."""
import os
import signal

from resource_management import *


class Worker(Script):
    def install(self, env):
        self.install_packages(env)  # package/files/ becomes app_install_dir

    def configure(self, env):
        import params
        env.set_params(params)
        Directory(params.conf_dir, recursive=True)
        File(format("{conf_dir}/worker.conf"), content=Template("worker.conf.j2"), mode=0o644)

    def start(self, env):
        import params
        self.configure(env)
        # In the background: the program lives on when this script has ended, and is known by its pid file. What it says
        # goes to application.log and application.err. One that ends within a second has failed, and START with it: then
        # the end of application.err is in what START says.
        Execute(format("{install_dir}/work.sh {conf_dir}/worker.conf"),
                wait_for_finish=False, pid_file=params.pid_file, poll_after=1)

    def status(self, env):
        import params
        env.set_params(params)
        check_process_status(params.pid_file)

    def stop(self, env):
        import params
        env.set_params(params)
        with open(params.pid_file) as file:
            os.kill(int(file.read()), signal.SIGTERM)


if __name__ == "__main__":
    Worker().execute()
