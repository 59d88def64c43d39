"""Writes the checkpoints that the tests read, by the frameworks themselves: make.py FRAMEWORK FOLDER.

    for f in tensorflow torch mxnet xgboost lightgbm; do
        "$(scripts/lab/python $f)" shim/checkpoint/format/testdata/make.py $f shim/checkpoint/format/testdata/$f
    done
"""

import os
import sys


def tensorflow(folder):
    import tensorflow as tf

    for name in ("v2", "named", "v1", "object", "counted"):
        os.makedirs(folder + "/" + name, exist_ok=True)
    one = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default(), one.Session() as session:
        one.get_variable("w", [3, 2], initializer=one.ones_initializer())
        step = one.train.get_or_create_global_step()
        session.run(one.global_variables_initializer())
        session.run(one.assign(step, 7))
        one.train.Saver().save(session, folder + "/v2/model.ckpt", global_step=step, write_meta_graph=False)
        one.train.Saver().save(session, folder + "/named/model.ckpt", write_meta_graph=False)
        one.train.Saver(write_version=one.train.SaverDef.V1).save(session, folder + "/v1/model.ckpt", global_step=step, write_meta_graph=False)
    tracked = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0]), step=tf.Variable(40, dtype=tf.int64))
    tf.train.CheckpointManager(tracked, folder + "/object", max_to_keep=2).save()
    tracked.write(folder + "/counted/weights")
    module = tf.Module()
    module.w = tf.Variable([1.0])
    tf.saved_model.save(module, folder + "/export")


def torch(folder):
    import torch

    state = {"model": {"w": torch.arange(4, dtype=torch.float32), "n": torch.tensor([1, 2], dtype=torch.int64)}, "step": 9,
             "text": "x" * 10, "view": torch.ones(3, 3, dtype=torch.float64)[1:], "none": None, "list": [1, 2.5, True, -70000, 1 << 40]}
    for name in ("zip", "old", "sharded"):
        os.makedirs(folder + "/" + name, exist_ok=True)
    torch.save(state, folder + "/zip/ckpt-9.pt")
    torch.save(state, folder + "/old/ckpt-9.pt", _use_new_zipfile_serialization=False)
    tolerant()
    import torch.distributed as dist
    from torch.distributed._shard import checkpoint as dcp

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    dcp.save_state_dict({"w": torch.arange(4.0), "more": torch.ones(2, 2), "n": 5}, dcp.FileSystemWriter(folder + "/sharded/step-30"))


def tolerant():
    """Lets Python 3.11 import torch 1.13's distributed package: its dataclasses have defaults that can be changed."""
    import dataclasses

    strict = dataclasses._process_class

    def process(cls, init, repr, eq, order, unsafe_hash, *rest):
        return strict(cls, init, repr, eq, order, "__hash__" not in cls.__dict__ or cls.__hash__ is None, *rest)

    dataclasses._process_class = process


def mxnet(folder):
    import mxnet as mx

    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=2, name="fc")
    args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,), dtype="float16")}
    os.makedirs(folder + "/1", exist_ok=True)
    mx.model.save_checkpoint(folder + "/model", 3, net, args, {"a": mx.nd.array([1, 2], dtype="int64")})
    mx.model.save_checkpoint(folder + "/1/model-1", 5, net, args, {})


def xgboost(folder):
    import numpy
    import xgboost

    os.makedirs(folder, exist_ok=True)
    data = xgboost.DMatrix(numpy.arange(12.0).reshape(6, 2), label=[0, 1, 0, 1, 0, 1])
    model = xgboost.train({"max_depth": 2, "objective": "binary:logistic"}, data, num_boost_round=2)
    for suffix in ("json", "ubj"):
        model.save_model(folder + "/model-2." + suffix)


def lightgbm(folder):
    import lightgbm
    import numpy

    os.makedirs(folder, exist_ok=True)
    data = lightgbm.Dataset(numpy.arange(40.0).reshape(20, 2), label=[0, 1] * 10)
    model = lightgbm.train({"min_data_in_leaf": 2, "verbose": -1, "objective": "binary"}, data, num_boost_round=2)
    model.save_model(folder + "/model-2.txt")
    text = open(folder + "/model-2.txt").read()
    end = text.index("pandas_categorical")  # the command line's snapshots are without it
    with open(folder + "/model.txt.snapshot_iter_2", "w") as out:
        out.write(text[:end])


globals()[sys.argv[1]](os.path.abspath(sys.argv[2]))
