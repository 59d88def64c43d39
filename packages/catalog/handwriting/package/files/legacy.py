"""What a worker leaves in a folder: how its training went, and of worker 0 what was learnt."""

import json
import os


class Legacy:
    """folder: where; nothing is left without one."""

    def __init__(self, folder):
        self._folder = folder
        self._history = None
        if folder:
            os.makedirs(folder, exist_ok=True)
            self._history = open(os.path.join(folder, "history.csv"), "a", encoding="ascii")

    def tell(self, step, loss):
        """A line of history, there at once: whoever copies the folder now has it whole."""
        if self._history:
            self._history.write("{},{:.4f}\n".format(step, loss))
            self._history.flush()

    def report(self, images, step):
        """Which images the training had and how far it came."""
        self._write("report.json", {"images": images.count, "sha256": images.digest, "step": step})

    def model(self, params, accuracy, step):
        """The network itself: numbers as text that give the same numbers back."""
        self._write("model.json", {"step": step, "accuracy": accuracy, "params": list(params)})

    def close(self):
        if self._history:
            self._history.close()

    def _write(self, name, fields):
        if self._folder:
            with open(os.path.join(self._folder, name), "w", encoding="ascii") as file:
                json.dump(fields, file, sort_keys=True)
                file.write("\n")
