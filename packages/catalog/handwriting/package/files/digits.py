"""The images: 1,797 handwritten digits of 8 x 8 pixels, see README.md for their origin."""

import gzip
import os

PIXELS = 64
CLASSES = 10
DARKEST = 16
# Every fifth image is held back: it is never trained on, only used to measure.
HELD_BACK = 5

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz")


def load(path=FILE):
    """(training, held back), each a list of (pixels between 0 and 1, digit)."""
    shades = [value / DARKEST for value in range(DARKEST + 1)]
    training, held_back = [], []
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for number, line in enumerate(lines):
            values = [int(value) for value in line.split(",")]
            if len(values) != PIXELS + 1:
                raise ValueError("{}, line {}: got {} numbers, want {}".format(
                    path, number + 1, len(values), PIXELS + 1))
            image = ([shades[value] for value in values[:PIXELS]], values[PIXELS])
            (held_back if number % HELD_BACK == HELD_BACK - 1 else training).append(image)
    return training, held_back


def shard(images, index, count):
    """The images of worker index of count; all of them when there are more workers than images."""
    return images[index::count] or images
