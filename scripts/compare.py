#!/usr/bin/env python3
"""Trains the same model with every way of steering the buffer, prints one table a link, and leaves a report.

Standard library only. Every row is one `rudder train`; all rows of a link train on the same minibatches, which one of them
records: `rudder replay` tells from it the fewest rows that any buffer of that size can fetch. What is printed comes from the
summary.json and decisions.*.jsonl that each run leaves, and from the replay's file.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

# name, options; the paper's policy starts empty: every row in its buffer is there by a decision
ROWS = [
    ("no buffer", ["--policy", "none"]),
    ("static", ["--policy", "static", "--start", "degree"]),
    ("lfu", ["--policy", "lfu"]),
    ("mix", ["--policy", "mix"]),
    ("lookahead", ["--policy", "lookahead"]),
    ("score, once", ["--policy", "score", "--start", "empty", "--decider", "once"]),
    ("score, fixed:16", ["--policy", "score", "--start", "empty", "--decider", "fixed:16"]),
    ("score, gain", ["--policy", "score", "--start", "empty", "--decider", "gain"]),
    ("score, llm", ["--policy", "score", "--start", "empty", "--decider", "llm"]),
]
# label, option, epochs, rows: the slower the link, the fewer epochs and rows fit into a few minutes
SHORT = ("no buffer", "static", "mix", "lookahead", "score, gain", "score, llm")
LINKS = [
    ("this machine as it is", "off", 4, None),
    ("emulated 1 Gbit/s, 50 us", "1Gbit,50us", 2, None),
    ("emulated 200 Mbit/s, 50 us", "200Mbit,50us", 2, SHORT),
]
RECORDED = "lookahead"  # the row whose run is recorded; minibatches are the same in all
REPLAYED = ["--policy", "none,static,lru,sieve,lfu,mix,lookahead", "--capacity", "5%,10%,25%,50%"]
MLP = ("features alone", ["--policy", "none", "--fanout", "0,0"])


def run(command, log_path):
    """Runs a command, its output in a file; what went wrong ends the program."""
    with open(log_path, "w") as log:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode
    if status != 0:
        with open(log_path) as log:
            sys.stderr.write(log.read()[-3000:])
        sys.exit("error: exit code %d: %s" % (status, " ".join(command)))


def replay(args, folder, name, options):
    """Replays a recorded run; returns the file with the rows, and the rows fetched by the bound at the capacity of training."""
    path = os.path.join(os.path.dirname(folder), name + ".json")
    run([args.rudder, "replay", folder, "--json", path] + options, path + ".log")
    with open(path) as file:
        rows = json.load(file)["rows"]
    bounds = [row["bound_rows"] for row in rows if row["rank"] == "all" and row["capacity"] == args.capacity]
    return path, bounds[0] if bounds else None


def train(args, name, options, link, epochs, folder):
    """Runs one training and returns its summary."""
    run_dir = os.path.join(folder, "%s-%s" % (link.split(",")[0], name.replace(", ", "-").replace(":", "").replace(" ", "-")))
    command = [args.rudder, "train", args.parts, "--ranks", str(args.ranks), "--epochs", str(epochs), "--batch", "250",
               "--fanout", "10,10", "--hidden", "64", "--lr", "0.01", "--dropout", "0.2", "--seed", "1",
               "--capacity", args.capacity, "--period", "16", "--link", link, "--run-dir", run_dir] + options
    if "llm" in options:
        command += ["--model", args.model]
    if name == RECORDED:
        command += ["--record"]
    run(command, run_dir + ".log")
    with open(os.path.join(run_dir, "summary.json")) as file:
        summary = json.load(file)
    summary["folder"] = run_dir
    return summary


def seconds_per_epoch(summary):
    times = summary["epoch_seconds"]
    return sum(times) / len(times)


def table(header, rows):
    """Prints rows of text in columns that line up: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths]] + rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())


def thousands(number):
    return "{:,}".format(int(round(number))).replace(",", " ")


def print_link(label, epochs, results, bound):
    base = results["no buffer"]
    header = ["%s, %d epoch%s" % (label, epochs, "s" if epochs > 1 else ""), "rows fetched", "fill", "MB", "saved", "hits",
              "epoch s", "ratio", "asked", "applied", "replaced", "latency ms", "age", "valid"]
    rows = []
    for name, summary in results.items():
        decisions = summary["decisions"]
        decided = decisions["asked"] > 0
        rows.append([
            name, thousands(summary["fetched_rows"]), thousands(summary["fill_rows"]),
            thousands(summary["fetched_bytes"] / 1e6),
            "%.1f %%" % (100 * (1 - summary["fetched_rows"] / max(1, base["fetched_rows"]))),
            "%.1f %%" % (100 * summary["hit_rate"]),
            "%.2f" % seconds_per_epoch(summary), "%.2f" % (seconds_per_epoch(summary) / seconds_per_epoch(base)),
            str(decisions["asked"]) if decided else "-", str(decisions["applied"]) if decided else "-",
            str(decisions["replaced"]) if decided else "-",
            "%.0f" % decisions["latency_ms"]["mean"] if name.endswith("llm") else "-",
            "%.0f" % decisions.get("age_minibatches", 0) if name.endswith("llm") else "-",
            "%.3f" % summary["valid"][-1]])
    row_mb = base["row_bytes"] / 1e6
    saved = "%.1f %%" % (100 * (1 - bound / max(1, base["fetched_rows"])))
    rows.append(["the bound", thousands(bound), "-", thousands(bound * row_mb), saved, saved] + ["-"] * 8)
    print()
    table(header, rows)


def print_agent_cost(results):
    """What the LLM cost against the rule that decides the same question, from the same link's runs."""
    llm, gain = results["score, llm"], results["score, gain"]
    cores = len(os.sched_getaffinity(0))
    more = sum(llm["epoch_seconds"]) - sum(gain["epoch_seconds"])
    print("the LLM against the rule gain: epochs %+.1f %%, that is %+.1f s on %d cores = %+.1f core seconds, while the agent used "
          "%.1f s of CPU;\ncompute threads waited %.1f s for minibatches, %.1f s with gain" % (
              100 * more / sum(gain["epoch_seconds"]), more, cores, more * cores, llm["decisions"]["agent_cpu_seconds"],
              llm["time"]["compute"]["wait"], gain["time"]["compute"]["wait"]))


def print_decision(summary):
    """One decision of the LLM in full: the first that replaced rows, or the first that was applied."""
    chosen = None
    for path in sorted(glob.glob(os.path.join(summary["folder"], "decisions.rank*.jsonl"))):
        with open(path) as file:
            for line in file:
                decision = json.loads(line)
                if decision["applied"] < 0 or decision.get("from_fallback"):
                    continue
                if chosen is None or (decision["status"] == "replaced" and chosen["status"] != "replaced"):
                    chosen = decision
    if chosen is None:
        print("\nThe LLM made no decision that was applied in %s." % summary["folder"])
        return
    print("\nOne decision in full (from %s):" % os.path.relpath(summary["folder"]))
    print("  asked     after minibatch %d, answered after %d, applied at %d, %.0f ms" %
          (chosen["asked"], chosen["answered"], chosen["applied"], chosen["latency_ms"]))
    print("  saw       %s" % chosen["prompt"])
    print("  said      %s (margin %+.2f)%s" % (chosen["verdict"], chosen["margin"],
                                               ": " + chosen["explanation"] if chosen.get("explanation") else ""))
    effect = chosen.get("effect")
    followed = "%s, %s rows replaced" % (chosen["status"], thousands(chosen["replaced_rows"]))
    if effect:
        followed += "; in the window after it the hit rate changed by %+.1f points and fetched rows a minibatch by %+.0f" % (
            100 * effect["hit_rate_change"], effect["fetched_change"])
    print("  followed  %s" % followed)


def print_verdict(by_link):
    """Two sentences from the numbers: what won, and where a plain rule beat the LLM."""
    wins = []
    for label, results in by_link.items():
        rows = min((r for r in results if r != "no buffer"), key=lambda r: results[r]["fetched_rows"])
        fast = min(results, key=lambda r: seconds_per_epoch(results[r]))
        wins.append("%s: fewest rows '%s', fastest epoch '%s'" % (label, rows, fast))
    print("\nWhat won - %s." % "; ".join(wins))
    beaten = []
    asked = False
    for label, results in by_link.items():
        if "score, llm" not in results:
            continue
        asked = True
        llm = results["score, llm"]
        better = [r for r in results if r not in ("score, llm", "no buffer") and results[r]["fetched_rows"] < llm["fetched_rows"]]
        if better:
            beaten.append("%s: %s" % (label, ", ".join("'%s' by %.1f %%" % (
                r, 100 * (1 - results[r]["fetched_rows"] / llm["fetched_rows"])) for r in better)))
    if not asked:
        print("The LLM did not take part (--no-model).")
    elif beaten:
        print("A plain rule fetched fewer rows than the LLM - %s." % "; ".join(beaten))
    else:
        print("No plain rule fetched fewer rows than the LLM in these runs.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rudder", required=True, help="the program")
    parser.add_argument("--parts", required=True, help="a partition directory")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--capacity", default="25%")
    parser.add_argument("--model", help="a GGUF file; without it the LLM's row is left out")
    parser.add_argument("--out", required=True, help="where the runs go, in a new folder each time")
    parser.add_argument("--quick", action="store_true", help="one epoch, without the slow link")
    args = parser.parse_args()

    folder = os.path.join(args.out, time.strftime("%Y%m%d-%H%M%S"))
    os.makedirs(folder)
    links = [(label, link, 1, names) for label, link, _, names in LINKS[:2]] if args.quick else LINKS
    rows = [row for row in ROWS if args.model or not row[0].endswith("llm")]
    start = time.time()

    def told(text):
        print("%s  %4.0f s  %s" % (" " * 7, time.time() - start, text), flush=True)

    mlp = train(args, MLP[0], MLP[1], "off", links[0][2], folder)
    by_link = {}
    bounds = {}
    losses = {}
    for label, link, epochs, names in links:
        results = {}
        for name, options in rows:
            if names is not None and name not in names:
                continue
            told("%s: %s" % (label, name))
            results[name] = train(args, name, options, link, epochs, folder)
            # The buffer only caches: whatever steers it, epochs end with the same bits.
            for epoch, loss in enumerate(results[name]["loss"]):
                if losses.setdefault(epoch, loss) != loss:
                    sys.exit("error: '%s' changed the loss of epoch %d: expected %r, found %r" %
                             (name, epoch, losses[epoch], loss))
        by_link[label] = results
        _, bounds[label] = replay(args, results[RECORDED]["folder"], link.split(",")[0] + "-bound",
                                  ["--policy", "none", "--capacity", args.capacity])

    told("replaying the recorded run with other policies and capacities, and writing the report")
    last = by_link[links[-1][0]]
    laboratory, _ = replay(args, last[RECORDED]["folder"], "replay", REPLAYED)
    report = os.path.join(folder, "report.html")
    run([args.rudder, "report"] + [last[name]["folder"] for name in SHORT if name in last] +
        [laboratory, "-o", report, "--title", "Rudder quick start: " + links[-1][0]], report + ".log")

    base = by_link[links[0][0]]["no buffer"]
    print("\nGraphSAGE on %s, %d ranks, batch 250 a rank, fan-out 10,10, buffer %s of the halo (%s rows in all)" % (
        base["graph"], args.ranks, args.capacity, thousands(by_link[links[0][0]]["static"]["capacity_rows"])))
    for label, _, epochs, _ in links:
        print_link(label, epochs, by_link[label], bounds[label])
        if args.model:
            print_agent_cost(by_link[label])
    print("\nrows fetched = misses + fill, over all ranks; saved and ratio are against no buffer; the bound = what the best "
          "possible\nbuffer of this size fetches, knowing the future; age = minibatches from question to use. valid = "
          "validation accuracy\nafter the last epoch; on the features alone (an MLP) it is %.3f. The losses of every epoch were "
          "the same bits in all %d runs." % (mlp["valid"][-1], sum(len(r) for r in by_link.values())))
    if args.model:
        print_decision(by_link[links[-1][0]]["score, llm"])
    print_verdict(by_link)
    print("\nThe report, to be opened in a browser: %s" % os.path.relpath(report))


if __name__ == "__main__":
    main()
