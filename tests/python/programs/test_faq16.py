"""HBox's FAQ 16: a chief's TF_CONFIG out of TF_CLUSTER_DEF, TF_ROLE and TF_INDEX, in every role."""

import json
import os
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2, "programs", "faq16.py"))


def run(cluster, role, index):
    env = dict(os.environ, TF_CLUSTER_DEF=json.dumps(cluster), TF_ROLE=role, TF_INDEX=str(index))
    return json.loads(subprocess.check_output([sys.executable, PROGRAM], env=env).decode("utf-8"))


class Faq16Test(unittest.TestCase):
    def test_every_role(self):
        cluster = {"ps": ["p:1"], "worker": ["w0:1", "w1:1", "w2:1"]}
        led = {"ps": ["p:1"], "chief": ["w0:1"], "worker": ["w1:1", "w2:1"]}
        for role, index, task in (
                ("ps", 0, {"type": "ps", "index": 0}),
                ("worker", 0, {"type": "chief", "index": 0}),
                ("worker", 1, {"type": "worker", "index": 0}),
                ("worker", 2, {"type": "worker", "index": 1}),
                ("evaluator", 0, {"type": "evaluator", "index": 0})):
            with self.subTest(role=role, index=index):
                self.assertEqual({"cluster": led, "task": task}, run(cluster, role, index))

    def test_one_worker_is_the_chief(self):
        self.assertEqual({"cluster": {"ps": ["p:1"], "chief": ["w0:1"]}, "task": {"type": "chief", "index": 0}},
                         run({"ps": ["p:1"], "worker": ["w0:1"]}, "worker", 0))


if __name__ == "__main__":
    unittest.main()
