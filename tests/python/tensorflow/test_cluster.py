"""Who is in the cluster: by TF_CONFIG, by the roster, by the exports."""

import json
import os
import tempfile
import types
import unittest

from package import WATCHDOG, Master, entries  # first: it finds the scripts
import cluster
from resource_management import Fail


class TFConfigTest(unittest.TestCase):
    def test_every_role(self):
        plain = {"ps": ["p:1", "p:2"], "worker": ["w:3", "w:4"]}
        led = {"ps": ["p:1"], "chief": ["c:9"], "worker": ["w:3", "w:4"]}
        for jobs, task, workers, job, index in (
                (plain, ("ps", 1), ["w:3", "w:4"], "ps", 1),
                (plain, ("worker", 0), ["w:3", "w:4"], "worker", 0),
                (led, ("chief", 0), ["c:9", "w:3", "w:4"], "worker", 0),
                (led, ("worker", 0), ["c:9", "w:3", "w:4"], "worker", 1),
                (led, ("worker", "1"), ["c:9", "w:3", "w:4"], "worker", 2),
                (led, ("evaluator", 0), ["c:9", "w:3", "w:4"], "evaluator", 0),
                ({"worker": ["w:3"]}, ("worker", 0), ["w:3"], "worker", 0)):
            with self.subTest(task=task, jobs=jobs):
                text = json.dumps({"cluster": jobs, "task": {"type": task[0], "index": task[1]}})
                self.assertEqual(cluster.Cluster(jobs.get("ps", []), workers, job, index), cluster.from_tf_config(text))

    def test_refusals(self):
        for text in ("{", "[]", "{}", '{"cluster": {}}', '{"cluster": {}, "task": {"type": "ps", "index": "x"}}'):
            with self.subTest(text=text), self.assertRaises(Fail):
                cluster.from_tf_config(text)

    def test_a_long_one_lies_in_a_file(self):
        text = json.dumps({"cluster": {"ps": ["p:1"], "worker": ["w:3"]}, "task": {"type": "ps", "index": 0}})
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            found = cluster.find({"TF_CONFIG_FILE": file.name}, None, 0)
        self.assertEqual(cluster.Cluster(["p:1"], ["w:3"], "ps", 0), found)


def row(component, index, role, addr):
    return {"c": component, "i": index, "role": role, "addr": addr}


class RosterTest(unittest.TestCase):
    roster = {"rows": [
        row("ps", 0, "ps", "h1:1"), row("ps", 1, "ps", "[::1]:2"), row("worker", 0, "worker", "h1:3"),
        row("worker", 1, "worker", "h2:4"), row("chiefworker", 0, "chief", "h3:5"), row("evaluator", 0, "evaluator", "h3"),
        row("helper", 0, "worker", "::1"), row("tensorboard", 0, "service", "h3:6006"),
    ]}

    def test_places(self):
        for component, index, job, task in (
                ("ps", 0, "ps", 0), ("ps", 1, "ps", 1), ("chiefworker", 0, "worker", 0), ("worker", 0, "worker", 1),
                ("worker", 1, "worker", 2), ("evaluator", 0, "evaluator", 0)):
            with self.subTest(component=component, index=index):
                want = cluster.Cluster(["h1:1", "[::1]:2"], ["h3:5", "h1:3", "h2:4"], job, task)
                self.assertEqual(want, cluster.from_roster(self.roster, component, index))

    def test_who_has_no_address_has_no_place(self):
        for component in ("helper", "tensorboard", "stranger"):
            with self.subTest(component=component), self.assertRaises(Fail):
                cluster.from_roster(self.roster, component, 0)

    def test_it_is_read_where_there_is_no_tf_config(self):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(self.roster, file)
            file.flush()
            found = cluster.find({"MUSTER_ROSTER_FILE": file.name, "MUSTER_INDEX": "1"}, types.SimpleNamespace(component="ps"), 0)
        self.assertEqual(("ps", 1), (found.job, found.task))


class ExportsTest(unittest.TestCase):
    counts = {"slider-appmaster": 1, "ps": 2, "chiefworker": 1, "worker": 2, "tensorboard": 1}
    whole = {"ps": entries("h1:1", "h2:2"), "chiefworker": entries("h3:3"), "worker": entries("h4:4", "h5:5")}

    def ask(self, *states, me=cluster.Me("worker", "h5:5", ""), seconds=WATCHDOG):
        master = Master(*states)
        self.addCleanup(master.close)
        return cluster.from_exports(master.url, me, seconds, pause=0.01)

    def test_until_everybody_is_there(self):
        some = dict(self.whole, worker=entries("h4:4"))
        none = {"ps": self.whole["ps"]}
        found = self.ask(None, ({}, {}), (self.counts, {}), (self.counts, none), (self.counts, some), (self.counts, self.whole))
        self.assertEqual(cluster.Cluster(["h1:1", "h2:2"], ["h3:3", "h4:4", "h5:5"], "worker", 2), found)

    def test_places(self):
        for me, job, task in (
                (cluster.Me("ps", "h2:2", ""), "ps", 1), (cluster.Me("chiefworker", "h3:3", ""), "worker", 0),
                (cluster.Me("worker", "h4:4", "container-2"), "worker", 1),
                (cluster.Me("ps", "another-name-of-h1:1", "container-1"), "ps", 0)):
            with self.subTest(me=me):
                found = self.ask((self.counts, self.whole), me=me)
                self.assertEqual((job, task), (found.job, found.task))

    def test_a_component_without_instances_is_not_waited_for(self):
        counts = {"ps": 1, "chiefworker": 0, "worker": 1}
        found = self.ask((counts, {"ps": entries("h1:1"), "worker": entries("h5:5")}))
        self.assertEqual(cluster.Cluster(["h1:1"], ["h5:5"], "worker", 0), found)

    def test_who_is_missing_is_named(self):
        one = {"entries": {"host_port": [{"value": "h2:2", "containerId": "c", "tag": "2"}]}}
        for state, word in (
                ((self.counts, dict(self.whole, ps=one)), "ps has 1 of 2 exports host_port, without ps-0"),
                ((self.counts, {"ps": self.whole["ps"]}),
                 "chiefworker has 0 of 1 exports host_port, without chiefworker-0; "
                 "worker has 0 of 2 exports host_port, without worker-0, worker-1"),
                (({}, {}), "nothing says how many instances"),
                ((dict(self.counts, worker=1), dict(self.whole, worker=entries("h4:4"))), "h5:5 of this worker is not among the exports"),
                (None, "503")):
            with self.subTest(word=word), self.assertRaises(Fail) as failed:
                self.ask(state, seconds=0)
            self.assertIn("no cluster after 0 s: ", str(failed.exception))
            self.assertIn(word, str(failed.exception))

    def test_nobody_answers(self):
        master = Master(None)
        master.close()
        with self.assertRaises(Fail) as failed:
            cluster.from_exports(master.url, cluster.Me("worker", "h5:5", ""), 0)
        self.assertIn("live/resources: ", str(failed.exception))

    def test_a_proxy_is_not_asked(self):
        saved = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(saved)))
        os.environ["http_proxy"] = "http://127.0.0.1:9"
        os.environ.pop("no_proxy", None)
        self.assertEqual(2, self.ask((self.counts, self.whole)).task)


class ArgumentsTest(unittest.TestCase):
    def test_as_the_builtin_command_gives_them(self):
        told = cluster.Cluster(["a:1", "b:2"], ["c:3", "d:4"], "worker", 1)
        want = ["--ps_hosts=a:1,b:2", "--worker_hosts=c:3,d:4", "--job_name=worker", "--task_index=1", "--ckp_dir=/c", "--work_dir=/w"]
        self.assertEqual(want, cluster.arguments(told, "/c", "/w", ""))
        self.assertEqual(want + ["--data_dir=hdfs://n/d"], cluster.arguments(told, "/c", "/w", "hdfs://n/d"))


class FindTest(unittest.TestCase):
    def test_nothing_tells_it(self):
        with self.assertRaises(Fail) as failed:
            cluster.find({}, None, 0)
        self.assertIn("MUSTER_SLIDER_URL", str(failed.exception))


if __name__ == "__main__":
    unittest.main()
