#!/usr/bin/env python3
"""Writes references.json: what GraphSAGE, its loss, its gradients and Adam must give, computed apart from Rudder's code.

Dense matrices in float64; gradients by automatic differentiation (the package autograd), none by hand. Inputs are float32
numbers, printed with nine digits, so that both sides start from the same bits. Needs requirements.txt (Python >= 3.11):

    python3 -m venv /tmp/numerics && /tmp/numerics/bin/pip install -r tests/numerics/requirements.txt
    /tmp/numerics/bin/python tests/numerics/make_references.py
"""
import json
import pathlib

import autograd
import autograd.numpy as np
import numpy

SEED = 20240611


def single(values):
    """float64 numbers that are float32 numbers."""
    return numpy.asarray(values, dtype=numpy.float32).astype(numpy.float64)


def numbers(values):
    return [float(f"{value:.9g}") for value in numpy.asarray(values).ravel()]


def exact(values):
    return [float(value) for value in numpy.asarray(values).ravel()]


def sample_block(random, n_dst, n_new, most, isolated):
    """Edges of a block: n_dst destinations among n_dst + n_new sources; each new source is used at least once."""
    n_src = n_dst + n_new
    neighbours = [list(random.integers(0, n_src, random.integers(1, most + 1))) for _ in range(n_dst)]
    for i in isolated:
        neighbours[i] = []
    open_rows = [i for i in range(n_dst) if i not in isolated]
    for j in range(n_dst, n_src):
        neighbours[open_rows[j % len(open_rows)]].append(j)
    neighbours[open_rows[0]] += neighbours[open_rows[0]][:1]  # an edge that occurs twice
    indptr = numpy.cumsum([0] + [len(row) for row in neighbours])
    return {"n_dst": n_dst, "n_src": n_src, "indptr": [int(i) for i in indptr],
            "index": [int(j) for row in neighbours for j in row]}


def mean_matrix(block):
    a = numpy.zeros((block["n_dst"], block["n_src"]))
    for i in range(block["n_dst"]):
        edges = block["index"][block["indptr"][i]:block["indptr"][i + 1]]
        for j in edges:
            a[i, j] += 1 / len(edges)
    return a


def logits_of(parameters, x, blocks, widths):
    h, at = x, 0
    for layer, block in enumerate(blocks):
        n_in, n_out = widths[layer], widths[layer + 1]
        w_self = parameters[at:at + n_in * n_out].reshape(n_out, n_in)
        at += n_in * n_out
        w_neigh = parameters[at:at + n_in * n_out].reshape(n_out, n_in)
        at += n_in * n_out
        bias = parameters[at:at + n_out]
        at += n_out
        h = np.dot(h[:block["n_dst"]], w_self.T) + np.dot(np.dot(mean_matrix(block), h), w_neigh.T) + bias
        if layer < len(blocks) - 1:
            h = np.maximum(h, 0)
    return h


def loss_of(parameters, x, blocks, widths, labels):
    """Mean cross-entropy over the rows with a label."""
    logits = logits_of(parameters, x, blocks, widths)
    rows = [i for i, label in enumerate(labels) if label >= 0]
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -sum(log_p[i, labels[i]] for i in rows) / len(rows)


def adam(parameters, gradient, rate, steps):
    """Algorithm 1 of Kingma and Ba; gradient(parameters) -> array. All iterates."""
    m, v, iterates = numpy.zeros_like(parameters), numpy.zeros_like(parameters), []
    for t in range(1, steps + 1):
        g = gradient(parameters)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        parameters = parameters - rate * (m / (1 - 0.9**t)) / (numpy.sqrt(v / (1 - 0.999**t)) + 1e-8)
        iterates.append(parameters)
    return iterates


def sage_case(name, random, widths, blocks, labels):
    count = sum(2 * a * b + b for a, b in zip(widths, widths[1:]))
    parameters = single(random.normal(0, 0.5, count))
    x = single(random.normal(0, 1, (blocks[0]["n_src"], widths[0])))
    gradient = autograd.grad(loss_of)
    arguments = (x, blocks, widths, labels)
    trained = adam(parameters, lambda p: gradient(p, *arguments), 0.01, 5)
    return {"name": name, "widths": widths, "blocks": blocks, "labels": labels,
            "parameters": numbers(parameters), "x": numbers(x),
            "logits": exact(logits_of(parameters, x, blocks, widths)),
            "loss": float(loss_of(parameters, *arguments)),
            "gradients": exact(gradient(parameters, *arguments)),
            "adam_rate": 0.01, "adam_steps": 5, "adam_parameters": exact(trained[-1]),
            "adam_loss": float(loss_of(trained[-1], *arguments))}


def adam_case(random):
    parameters = single(random.normal(0, 1, 7))
    gradients = single(random.normal(0, 1, (20, 7)) * numpy.array([1e-6, 1e-3, 0.1, 1, 10, 1e3, 0]))
    feed = iter(gradients)
    iterates = adam(parameters, lambda _: next(feed), 0.003, len(gradients))
    return {"rate": 0.003, "parameters": numbers(parameters), "gradients": numbers(gradients),
            "iterates": exact(iterates)}


def main():
    random = numpy.random.default_rng(SEED)
    two = [sample_block(random, 9, 8, 4, [2, 7]), sample_block(random, 4, 5, 3, [1])]
    three = [sample_block(random, 14, 9, 4, [0, 13]), sample_block(random, 8, 6, 3, [5]),
             sample_block(random, 3, 5, 3, [2])]
    reference = {"seed": SEED,
                 "sage": [sage_case("two layers", random, [6, 5, 4], two, [3, -1, 0, 2]),
                          sage_case("three layers", random, [5, 7, 7, 3], three, [1, 2, -1])],
                 "adam": adam_case(random)}
    path = pathlib.Path(__file__).with_name("references.json")
    path.write_text(json.dumps(reference, indent=None, separators=(",", ":")).replace(',"', ',\n"') + "\n")


if __name__ == "__main__":
    main()
