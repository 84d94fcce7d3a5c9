#!/usr/bin/env python3
"""Writes the situations that `rudder agent --selftest` answers: one JSON object a line, the fields of rudder_context_t.

usage: make_situations.py frozen|heldout > FILE

The files beside this script are the reference; this script says how they came about (README.md tells the distribution).
A situation is built from the outside in: a graph's magnitude, a point in the run, a hit rate, a history, and the ratio of
saving to cost; then the counts are derived so that they agree with each other as those of a run would. The label is
always saving_rows > cost_rows, computed from the numbers that are written, never from the intention.
"""
import json
import random
import sys

# graph, nodes, edges, ranks, row bytes, remote rows a minibatch (low, high), minibatches in the run (low, high)
FROZEN_GRAPHS = [
    ("wordnet", 117659, 1300000, 4, 1024, (1500, 3000), (400, 1200)),
    ("ogbn-arxiv", 169343, 1166243, 4, 512, (2000, 9000), (200, 900)),
    ("reddit", 232965, 114615892, 4, 2408, (20000, 60000), (300, 2000)),
    ("ogbn-products", 2449029, 61859140, 8, 400, (30000, 90000), (500, 5000)),
    ("ogbn-papers100M", 111059956, 1615685872, 16, 512, (90000, 400000), (1000, 20000)),
    ("citeseer", 3327, 9104, 2, 14812, (60, 400), (20, 300)),
]
HELDOUT_GRAPHS = [
    ("yelp", 716847, 13954819, 4, 1200, (8000, 40000), (300, 3000)),
    ("friendster", 65608366, 1806067135, 32, 1024, (150000, 500000), (2000, 30000)),
    ("coauthor-cs", 18333, 163788, 3, 27220, (500, 2500), (50, 400)),
    ("orkut", 3072627, 117185083, 8, 256, (40000, 120000), (400, 6000)),
]


def history(rng, brought, period, minibatch, capacity, fetched):
    """Past decisions, newest first. brought: lot, some, none, harm, or nothing (no replacement so far)."""
    if brought == "nothing":
        count = rng.choice([0, 0, 1, 2])
        statuses = ["kept"] * count
    else:
        count = rng.randint(1, 5)
        statuses = ["replaced" if i == 0 or rng.random() < .7 else "kept" for i in range(count)]
    low, high = {"lot": (.06, .20), "some": (.015, .05), "none": (-.004, .004), "harm": (-.08, -.015),
                 "nothing": (0, 0)}[brought]
    entries = []
    for i, status in enumerate(statuses):
        replaced = status == "replaced"
        change = rng.uniform(low, high) if replaced else rng.uniform(-.006, .006)
        share = rng.uniform(.05, .4) if replaced else 0.
        entries.append({
            "status": status, "minibatch": max(0, minibatch - period * (i + 1)),
            "replaced_rows": int(share * capacity), "replaced_share": round(share, 4),
            "hit_rate_change": round(change, 4), "fetched_change": round(-change * fetched, 1),
            "known": 1 if i > 0 or rng.random() < .8 else 0,
        })
    return entries


def situation(rng, graphs, name, kind, hit, trend, comm, left, brought, ratio, unknown=False):
    """One line. hit, trend, comm, left, ratio: (low, high) ranges; left is a share of the run."""
    for _ in range(1000):
        graph, nodes, edges, ranks, row_bytes, remote, length = rng.choice(graphs)
        period = rng.choice([8, 16, 16, 16, 32])
        total = rng.randint(*length)
        remaining = max(1, round(rng.uniform(*left) * total))
        minibatch = total - remaining
        minibatch -= minibatch % period
        if minibatch < period:
            continue
        remaining = total - minibatch
        per_minibatch = rng.randint(*remote)
        owned = nodes // ranks
        halo = int(min(nodes - owned, owned * rng.uniform(.5, 1.6)))
        capacity = max(8, int(halo * rng.choice([.05, .1, .25, .5])))
        remote_rows = per_minibatch * period
        hit_rows = int(rng.uniform(*hit) * remote_rows)
        fill_rows = rng.choice([0, 0, int(rng.uniform(.0, .2) * capacity)])
        fetched = (remote_rows - hit_rows + fill_rows) / period
        horizon = period if unknown else remaining
        # The cost is at most the capacity; the saving at most what is missed.
        wanted = 10 ** rng.uniform(*ratio) if ratio else 0.
        cost = int(capacity * 10 ** rng.uniform(-2.2, -.3))
        saving = wanted * cost / horizon
        if cost < 1 or saving > .5 * (remote_rows - hit_rows) / period:
            continue
        saving = round(saving, 3)
        swaps = min(capacity, cost + int(rng.uniform(0, .1) * cost))
        stale = min(capacity, int(swaps * rng.uniform(1, 1.5)))
        compute = rng.uniform(.02, .3)
        context = {
            "minibatch": minibatch, "minibatches_left": -1 if unknown else remaining, "period": period,
            "window_minibatches": period, "remote_rows": remote_rows, "hit_rows": hit_rows,
            "miss_rows": remote_rows - hit_rows, "fill_rows": fill_rows,
            "hit_rate": round(hit_rows / remote_rows, 6),
            "hit_rate_trend": round(rng.uniform(*trend), 4), "fetched_per_minibatch": round(fetched, 2),
            "fetched_trend": round(rng.uniform(*comm), 4), "row_bytes": row_bytes, "capacity": capacity,
            "stale_share": round(stale / capacity, 4), "stale": stale,
            "candidates": swaps + int(rng.uniform(0, 3) * swaps), "swaps": swaps,
            "saving_per_minibatch": saving, "saving_rows": round(saving * horizon, 1), "cost_rows": cost,
            "t_sample": round(compute * .4, 4), "t_fetch": round(fetched * row_bytes / 1.25e8, 4),
            "t_wait": round(max(0., fetched * row_bytes / 1.25e8 - compute), 4), "t_compute": round(compute, 4),
            "history": history(rng, brought, period, minibatch, capacity, fetched),
            "facts": {"graph": graph, "model": "sage", "nodes": nodes, "edges": edges, "owned": owned, "halo": halo,
                      "ranks": ranks, "rank": rng.randrange(ranks)},
        }
        context["hit_rate_total"] = round(min(1., max(0., context["hit_rate"] - context["hit_rate_trend"] / 2)), 6)
        expect = "replace" if context["saving_rows"] > context["cost_rows"] else "keep"
        return {"name": name, "kind": kind, "expect": expect, "context": context}
    raise SystemExit(f"{name}: no situation fits")


LOW, MIDDLE, HIGH = (.12, .45), (.45, .75), (.82, .985)
FALLING, STEADY, RISING = (-.2, -.03), (-.008, .008), (.03, .2)
LESS, SAME, MORE = (-.4, -.08), (-.03, .03), (.08, .6)
FEW, SOME, MANY = (.01, .06), (.2, .5), (.6, .95)
MUCH, CLEARLY, BARELY = (.35, 1.6), (.05, .28), (.005, .04)  # log10 of saving / cost


def minus(range_):
    return (-range_[1], -range_[0])


CLEAR_YES = [(LOW, FALLING, MORE, MANY, "lot"), (LOW, FALLING, MORE, SOME, "some"), (LOW, STEADY, SAME, MANY, "lot"),
             (MIDDLE, FALLING, MORE, MANY, "some"), (LOW, FALLING, MORE, MANY, "nothing"),
             (MIDDLE, FALLING, SAME, SOME, "lot")]
CLEAR_NO = [(HIGH, STEADY, SAME, FEW, "none"), (HIGH, RISING, LESS, FEW, "none"), (HIGH, STEADY, SAME, SOME, "none"),
            (MIDDLE, STEADY, SAME, FEW, "none"), (HIGH, RISING, LESS, SOME, "harm"), (MIDDLE, RISING, LESS, FEW, "harm")]
# Replacing pays although the other signs say that all is well or that replacing never helped.
CONFLICT_YES = [(HIGH, STEADY, SAME, MANY, "none"), (HIGH, RISING, LESS, MANY, "lot"), (HIGH, STEADY, SAME, SOME, "nothing"),
                (MIDDLE, RISING, LESS, SOME, "none"), (LOW, RISING, LESS, FEW, "some"), (MIDDLE, STEADY, SAME, FEW, "none"),
                (HIGH, RISING, SAME, SOME, "harm"), (LOW, STEADY, MORE, FEW, "harm"), (MIDDLE, RISING, LESS, MANY, "harm"),
                (HIGH, FALLING, SAME, FEW, "none"), (MIDDLE, STEADY, LESS, MANY, "none")]
# Replacing does not pay although the other signs call for it.
CONFLICT_NO = [(LOW, FALLING, MORE, FEW, "lot"), (LOW, FALLING, MORE, MANY, "some"), (LOW, STEADY, MORE, SOME, "lot"),
               (MIDDLE, FALLING, MORE, MANY, "lot"), (MIDDLE, FALLING, MORE, FEW, "some"), (LOW, FALLING, SAME, FEW, "nothing"),
               (LOW, RISING, SAME, MANY, "lot"), (MIDDLE, FALLING, SAME, SOME, "lot"), (HIGH, FALLING, MORE, MANY, "lot"),
               (LOW, STEADY, SAME, MANY, "nothing"), (MIDDLE, RISING, MORE, MANY, "lot")]


def build(set_name):
    frozen = set_name == "frozen"
    rng = random.Random(20260117 if frozen else 77003)
    graphs = FROZEN_GRAPHS if frozen else HELDOUT_GRAPHS
    clear, conflicting, close = (24, 36, 4) if frozen else (8, 10, 2)
    lines = []

    def add(kind, number, yes, templates, ratios):
        for i in range(number):
            template = templates[i % len(templates)]
            ratio = ratios[i % len(ratios)]
            unknown = i % 9 == 8
            if ratio == "zero":
                ratio = None
            elif not yes:
                ratio = minus(ratio)
            name = f"{kind}-{'replace' if yes else 'keep'}-{i + 1}"
            lines.append(situation(rng, graphs, name, kind, *template, ratio, unknown))

    add("clear", clear, True, CLEAR_YES, [MUCH])
    add("clear", clear, False, CLEAR_NO, [MUCH, MUCH, "zero", MUCH])
    add("conflicting", conflicting, True, CONFLICT_YES, [MUCH, CLEARLY, MUCH, CLEARLY, MUCH])
    add("conflicting", conflicting, False, CONFLICT_NO, [MUCH, CLEARLY, MUCH, CLEARLY, MUCH])
    add("close", close, True, CLEAR_YES[:2] + CONFLICT_YES[:2], [BARELY])
    add("close", close, False, CLEAR_NO[:2] + CONFLICT_NO[:2], [BARELY])
    return lines


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("frozen", "heldout"):
        raise SystemExit("usage: make_situations.py frozen|heldout > FILE")
    for line in build(sys.argv[1]):
        wanted = line["name"].split("-")[1]
        if wanted != line["expect"]:
            raise SystemExit(f"{line['name']}: the counts say {line['expect']}")
        print(json.dumps(line))


if __name__ == "__main__":
    main()
