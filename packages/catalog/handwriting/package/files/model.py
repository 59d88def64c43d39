"""A network with one hidden layer, its parameters laid out as one flat vector.

The vector is: for each hidden unit its 64 weights, then the hidden biases, then for
each digit its weights over the hidden units, then the digits' biases. A parameter
server holds a contiguous slice of it and needs to know nothing more.
"""

import math
import random
from array import array
from operator import mul

from digits import CLASSES, PIXELS

HIDDEN = 24
_B1 = HIDDEN * PIXELS
_W2 = _B1 + HIDDEN
_B2 = _W2 + CLASSES * HIDDEN
SIZE = _B2 + CLASSES


def initial(seed):
    """The parameters before the first step; the same seed gives the same ones everywhere."""
    chance = random.Random(seed)
    params = array("d", bytes(8 * SIZE))
    for i in range(_B1):
        params[i] = chance.gauss(0, 1 / math.sqrt(PIXELS))
    for i in range(_W2, _B2):
        params[i] = chance.gauss(0, 1 / math.sqrt(HIDDEN))
    return params


def bounds(index, count):
    """(first, after last) of the slice that server index of count holds."""
    return SIZE * index // count, SIZE * (index + 1) // count


class Net:
    """The parameters unpacked into rows, ready to compute with."""

    def __init__(self, params):
        rows = params.tolist()
        self.w1 = [rows[h * PIXELS:(h + 1) * PIXELS] for h in range(HIDDEN)]
        self.b1 = rows[_B1:_W2]
        self.w2 = [rows[_W2 + c * HIDDEN:_W2 + (c + 1) * HIDDEN] for c in range(CLASSES)]
        self.b2 = rows[_B2:]

    def forward(self, pixels):
        """(activations of the hidden layer, probability of each digit)."""
        hidden = [math.tanh(sum(map(mul, row, pixels), bias)) for row, bias in zip(self.w1, self.b1)]
        scores = [sum(map(mul, row, hidden), bias) for row, bias in zip(self.w2, self.b2)]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        return hidden, [power / total for power in powers]

    def accuracy(self, images):
        """The share of images whose likeliest digit is the right one."""
        right = 0
        for pixels, digit in images:
            _, chances = self.forward(pixels)
            right += chances.index(max(chances)) == digit
        return right / len(images)

    def gradient(self, batch):
        """(mean cross-entropy, its gradient as a flat vector) over the batch."""
        loss = 0.0
        g_w1 = [[0.0] * PIXELS for _ in range(HIDDEN)]
        g_b1 = [0.0] * HIDDEN
        g_w2 = [[0.0] * HIDDEN for _ in range(CLASSES)]
        g_b2 = [0.0] * CLASSES
        columns = list(zip(*self.w2))
        for pixels, digit in batch:
            hidden, error = self.forward(pixels)
            loss -= math.log(max(error[digit], 1e-300))
            error[digit] -= 1.0
            for c, e in enumerate(error):
                g_w2[c] = [g + e * h for g, h in zip(g_w2[c], hidden)]
                g_b2[c] += e
            for h, value in enumerate(hidden):
                e = sum(map(mul, columns[h], error)) * (1.0 - value * value)
                g_w1[h] = [g + e * p for g, p in zip(g_w1[h], pixels)]
                g_b1[h] += e
        flat = array("d")
        for row in g_w1 + [g_b1] + g_w2 + [g_b2]:
            flat.extend(row)
        scale = 1.0 / len(batch)
        return loss * scale, array("d", [value * scale for value in flat])


def descend(params, gradient, rate):
    """Moves the parameters, in place, one step down the gradient."""
    params[:] = array("d", [p - rate * g for p, g in zip(params, gradient)])
