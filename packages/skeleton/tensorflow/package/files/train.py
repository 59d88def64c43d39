"""What every ps and worker runs. It learns y = 3x + 1 with Python alone, so that it runs everywhere: put your model
where it says so, and everything around it stays.

TF_CONFIG is the cluster and who we are in it, as tf.distribute and tf.train.Server take it. A parameter server runs
until muster ends it, which it does when all workers are done.
"""
import argparse
import json
import os
import random
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    steps = parser.parse_args().steps
    config = json.loads(os.environ["TF_CONFIG"])
    task, cluster = config["task"], config["cluster"]
    print("{type} {index} of".format(**task), json.dumps(cluster, sort_keys=True), flush=True)
    if task["type"] == "ps":
        serve()
    train(task["index"], steps)


def serve():
    while True:  # with TensorFlow: tf.distribute.Server(cluster, job_name="ps", task_index=…).join()
        time.sleep(3600)


def train(index, steps):
    # this worker's own folder, in the one that all of them see
    saves = os.path.join(os.environ["MUSTER_CHECKPOINT_DIR"], os.environ["MUSTER_INSTANCE"])
    os.makedirs(saves, exist_ok=True)
    saved = []
    model = {"step": 0, "slope": 0.0, "offset": 0.0}
    if os.environ.get("MUSTER_CHECKPOINT"):
        with open(os.environ["MUSTER_CHECKPOINT"]) as file:
            model = json.load(file)
        print("worker {}: goes on from step {}".format(index, model["step"]), flush=True)
    numbers = random.Random(index)
    while model["step"] < steps:
        # your model goes here
        x = numbers.uniform(-1, 1)
        error = model["slope"] * x + model["offset"] - (3 * x + 1)
        model["slope"] -= 0.1 * error * x
        model["offset"] -= 0.1 * error
        model["step"] += 1
        if model["step"] % 50 == 0 or model["step"] == steps:
            # the last number of the name is the step
            saved.append(os.path.join(saves, "model-{step}.json".format(**model)))
            save(model, saved[-1])
            if len(saved) > 2:
                os.remove(saved.pop(0))
            print("reporter progress:{:.2f}".format(model["step"] / steps), file=sys.stderr, flush=True)
    print("worker {}: y = {slope:.2f} x + {offset:.2f} after {step} steps".format(index, **model), flush=True)


def save(model, path):
    with open(path + ".new", "w") as file:
        json.dump(model, file)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
