from daemon import Daemon
from resource_management import *


class KafkaBroker(Daemon):
    name = "server"
    main = "kafka.Kafka"

    def properties(self, params):
        properties = dict(params.broker)
        properties["listeners"] = format("PLAINTEXT://0.0.0.0:{port}", port=properties.pop("port"))
        properties["advertised.listeners"] = properties["listeners"].replace("0.0.0.0", params.hostname)
        return properties


if __name__ == "__main__":
    KafkaBroker().execute()
