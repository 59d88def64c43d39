from daemon import Daemon


class ZooKeeper(Daemon):
    name = "zookeeper"
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

    def properties(self, params):
        return params.zoo


if __name__ == "__main__":
    ZooKeeper().execute()
