"""Prints, as one line of JSON in the form of TF_CONFIG, what TensorFlow's own resolver makes of TF_CONFIG."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(json.dumps({
    "cluster": resolver.cluster_spec().as_dict(),
    "task": {"type": resolver.task_type, "index": resolver.task_id},
}))
