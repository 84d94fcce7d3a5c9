#!/usr/bin/env python3
"""
Start contents that the trainer works out: a file of in-degrees is the start "degree", whatever the partition numbers nodes
like; what is sampled or computed beforehand hits more often than chance, and presampling takes nothing from training.
"""
import array
import os

from train_tools import Checks, check_books, community_graph, partition, train

TRAINING = ["--epochs", 3, "--batch", 20, "--fanout", "5,5", "--hidden", 8, "--seed", 4, "--eval", "none", "--policy", "static"]


def in_degrees(graph):
    """By original id."""
    with open(os.path.join(graph, "indptr.npy"), "rb") as file:
        data = file.read()
    indptr = array.array("q", data[10 + int.from_bytes(data[8:10], "little"):])
    return [b - a for a, b in zip(indptr, indptr[1:])]


def check_starts(checks, parts, folder, weights):
    runs = {}
    for start in ("empty", "random", "degree", "presample", "vip", "file:" + weights["degrees"], "file:" + weights["few"],
                  "file:" + weights["none"]):
        name = "file-" + os.path.basename(start) if start.startswith("file:") else start
        runs[name] = run = train(parts, os.path.join(folder, name), *TRAINING, "--capacity", "20%", "--start", start)
        check_books(checks, run, start)
        if run.code != 0:
            return
    hits = {name: run.summary["hit_rows"] for name, run in runs.items()}
    rows = {name: run.summary["start_rows"] for name, run in runs.items()}
    full = runs["degree"].summary["capacity_rows"]
    checks.equal(len({str(run.losses()) for run in runs.values()}), 1, "losses whatever the start")
    for degree, file in zip(runs["degree"].lines("steps").values(), runs["file-degrees"].lines("steps").values()):
        checks.equal([s["hit"] for s in file], [s["hit"] for s in degree], "a file of degrees: hits of every step")
    for name in ("random", "degree", "vip", "file-degrees"):
        checks.equal(rows[name], full, name, "fills the buffer")
    checks.that(0 < rows["presample"] <= full, "presample loads rows that were sampled", rows["presample"], full)
    checks.that(0 < rows["file-few"] <= 4 * runs["degree"].summary["ranks"], "a file of few ids loads those", rows["file-few"])
    checks.equal((rows["file-none"], hits["file-none"], rows["empty"]), (0, 0, 0), "a file without ids loads nothing")
    for name in ("presample", "vip"):
        checks.that(hits[name] > 1.2 * hits["random"], name, "beats chance", hits)
        checks.that(hits[name] > 0.98 * hits["degree"], name, "is not worse than degrees", hits)


def main():
    with Checks() as checks:
        graph = community_graph(os.path.join(checks.folder, "graph"), nodes=1200, degree=8)
        degrees = in_degrees(graph)
        texts = {"degrees": "".join("%d %d\n" % pair for pair in enumerate(degrees)),
                 "few": "# the most connected\n" + "".join("%d\n" % v for v in sorted(range(1200), key=lambda v: -degrees[v])[:4]),
                 "none": "\n"}
        weights = {}
        for name, text in texts.items():
            weights[name] = os.path.join(checks.folder, name)
            with open(weights[name], "w") as file:
                file.write(text)
        for n in (2, 3):
            for method in ("metis", "random"):
                folder = os.path.join(checks.folder, "%s%d" % (method, n))
                os.makedirs(folder)
                check_starts(checks, partition(graph, os.path.join(folder, "parts"), n, "--method", method), folder, weights)


if __name__ == "__main__":
    main()
