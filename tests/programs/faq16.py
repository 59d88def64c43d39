"""The program of HBox's FAQ 16: TF_CONFIG, with a chief, out of TF_CLUSTER_DEF, TF_ROLE and TF_INDEX.

Its logic is the original's, with the key "wroker" mended; the result is printed.
"""

import json
import os

cluster = json.loads(os.environ["TF_CLUSTER_DEF"])
task_index = int(os.environ["TF_INDEX"])
task_type = os.environ["TF_ROLE"]

# chief: worker 0 as chief, other worker index --
tf_config = dict()
worker_num = len(cluster["worker"])
if task_type == "ps":
    tf_config["task"] = {"index": task_index, "type": task_type}
elif task_type == "worker":
    if task_index == 0:
        tf_config["task"] = {"index": 0, "type": "chief"}
    else:
        tf_config["task"] = {"index": task_index - 1, "type": task_type}
elif task_type == "evaluator":
    tf_config["task"] = {"index": task_index, "type": task_type}

if worker_num == 1:
    cluster["chief"] = cluster["worker"]
    del cluster["worker"]
else:
    cluster["chief"] = [cluster["worker"][0]]
    del cluster["worker"][0]

tf_config["cluster"] = cluster
os.environ["TF_CONFIG"] = json.dumps(tf_config)

print(os.environ["TF_CONFIG"])
