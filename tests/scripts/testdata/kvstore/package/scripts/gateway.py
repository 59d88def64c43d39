import json
import os
import urllib.request

from resource_management import *


class Gateway(Script):
    def install(self, env):
        self.install_packages(env)

    def stores(self):
        """The stores, from the exports that Slider's publisher has of them."""
        url = os.environ["MUSTER_SLIDER_URL"] + "/ws/v1/slider/publisher/exports/stores"
        with urllib.request.urlopen(url) as answer:
            group = json.load(answer)
        return [entry["value"] for entry in group["entries"]["host_port"]]

    def start(self, env):
        import params
        env.set_params(params)
        stores = ",".join(self.stores())
        command = format("exec python3 {app_root}/store/gateway.py {gateway_port} {stores} >> {log_dir}/gateway.out 2>&1")
        Execute(command)

    def stop(self, env):
        Logger.info("the gateway ends with its script")

    def status(self, env):
        import params
        env.set_params(params)
        Execute(format("python3 {app_root}/store/client.py {gateway_port} PING"))


if __name__ == "__main__":
    Gateway().execute()
