package apps

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two brokers find the ZooKeeper of their app and start after it, by the defaults of the package's dictionaries. A
// broker that is killed comes back with its log, so does the whole app from a stop, and a third broker leaves the first
// two alone.
func TestKafka(t *testing.T) {
	a := newApp(t, "kafka", "kafka")
	a.create(3, "--option", "muster.stop.grace", "10") // a broker cannot leave a ZooKeeper that stops as well
	brokers := a.servers(2, "broker")
	a.serve(1, "KAFKA_BROKER-0", "KAFKA_BROKER-1")
	a.ordered()
	a.tool("0", "org.apache.kafka.tools.TopicCommand", "--create --topic kept --replica-assignment 1:2", brokers)
	a.tool("1", "kafka.tools.ConsoleProducer", "--topic kept", brokers, "one", "two", "three")
	a.consumed(brokers, "one", "two", "three")

	a.kill("KAFKA_BROKER-0", "app/run/component.pid") // it may fail once more while ZooKeeper knows the killed one
	a.serve(2, "KAFKA_BROKER-0")
	a.consumed(brokers[:1], "one", "two", "three")

	a.slider("stop")
	a.slider("start", "--wait", "60")
	a.up(3)
	a.serve(2, "KAFKA_BROKER-1")
	a.serve(3, "KAFKA_BROKER-0")
	brokers = a.servers(2, "broker")
	a.consumed(brokers, "one", "two", "three")

	before := a.instances()
	a.flex("KAFKA_BROKER", 3, "KAFKA_BROKER-2", "none")
	a.up(4)
	a.serve(1, "KAFKA_BROKER-2")
	more := a.servers(3, "broker")
	if !slices.Equal(more[:2], brokers) {
		t.Errorf("brokers %v after the flex, want %v to be the first", more, brokers)
	}
	a.left(before)
	a.consumed(more[2:], "one", "two", "three")

	a.stop(slices.Collect(maps.Keys(a.instances()))...)
}

// serve waits until brokers have come up that many times.
func (a *app) serve(times int, brokers ...string) {
	a.t.Helper()
	for _, name := range brokers {
		a.await(fmt.Sprintf("%s to have come up %d times", name, times), func() bool {
			text, err := os.ReadFile(filepath.Join(a.work, "log", name, "server.out"))
			return err == nil && strings.Count(string(text), "] started\n") >= times
		})
	}
}

// ordered asserts that no broker was started before ZooKeeper was, and that each was told where it is.
func (a *app) ordered() {
	a.t.Helper()
	links := a.exports("quicklinks", "zookeeper")
	if len(links) != 1 {
		a.t.Fatalf("zookeeper has %d quick links, want 1: %v", len(links), links)
	}
	a.says(links[0], "ruok", "imok")
	for _, id := range []string{"1", "2"} {
		broker := "KAFKA_BROKER-" + string(rune(id[0]-1))
		got := a.file(broker + "/app/conf/server.properties")
		for _, line := range []string{
			"broker.id=" + id, "zookeeper.connect=" + links[0] + "/kafka/kafka",
			"log.dirs=" + a.work + "/" + broker + "/app/data/broker-" + id,
		} {
			if !strings.Contains(got, "\n"+line+"\n") {
				a.t.Errorf("server.properties of %s has no line %q:\n%s", broker, line, got)
			}
		}
		before := a.written(filepath.Join(a.work, "ZOOKEEPER-0/app/run/component.pid"))
		if !before.Before(a.written(filepath.Join(a.work, broker, "app/conf/server.properties"))) {
			a.t.Errorf("%s was started before ZooKeeper was", broker)
		}
	}
}

// tool runs a tool of Kafka's beside a broker, told these lines, and gives what it printed.
func (a *app) tool(broker, class, args string, bootstrap []string, lines ...string) string {
	a.t.Helper()
	script := fmt.Sprintf("printf '%%s\\n' \"$@\" | %s/bin/java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "+
		"-cp 'app/install/kafka/libs/*' %s --bootstrap-server %s %s", a.java, class, strings.Join(bootstrap, ","), args)
	command := []string{"exec", a.name + "/KAFKA_BROKER-" + broker, "--", "sh", "-c", script, "sh"}
	return string(a.do(append(command, lines...)...))
}

// consumed reads the topic from its beginning.
func (a *app) consumed(bootstrap []string, want ...string) {
	a.t.Helper()
	out := a.tool("1", "org.apache.kafka.tools.consumer.ConsoleConsumer",
		fmt.Sprintf("--topic kept --partition 0 --offset earliest --max-messages %d", len(want)), bootstrap)
	if got := strings.Fields(out); !slices.Equal(got, want) {
		a.t.Errorf("consumed %q, want %q", got, want)
	}
}
