"""The images: handwritten digits of 8 x 8 pixels, a line of numbers each, see README.md for their origin."""

import hashlib
import os

PIXELS = 64
CLASSES = 10
DARKEST = 16
# Every fifth image is held back: it is never trained on, only used to measure.
HELD_BACK = 5

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz")

_SHADES = [value / DARKEST for value in range(DARKEST + 1)]


class Lines:
    """Reads images from lines; name is where they are from, for messages. Keeps a digest of what it has read."""

    def __init__(self, name):
        self._name = name
        self._hash = hashlib.sha256()

    @property
    def digest(self):
        return self._hash.hexdigest()

    def parse(self, lines):
        """(training, held back), each a list of (pixels between 0 and 1, digit)."""
        training, held_back = [], []
        for number, line in enumerate(lines):
            line = line.rstrip(b"\r\n")
            self._hash.update(line + b"\n")
            image = self._image(line, number)
            (held_back if number % HELD_BACK == HELD_BACK - 1 else training).append(image)
        return training, held_back

    def _image(self, line, number):
        try:
            values = [int(value) for value in line.split(b",")]
            if len(values) != PIXELS + 1:
                raise ValueError("got {} numbers, want {}".format(len(values), PIXELS + 1))
            if not 0 <= min(values[:PIXELS]) or not 0 <= values[PIXELS] < CLASSES:
                raise ValueError("got a number that is none of an image")
            return [_SHADES[value] for value in values[:PIXELS]], values[PIXELS]
        except (ValueError, IndexError) as err:
            raise ValueError("{}, line {}: {}".format(self._name, number + 1, err))


def shard(images, index, count):
    """The images of worker index of count; all of them when there are more workers than images."""
    return images[index::count] or images
