#!/usr/bin/env python3
"""A lower folder never includes a higher one, and librudder includes nothing of the program nor of another library."""
import os
import re
import sys

ROOT = os.environ.get("RUDDER_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIBRARY = ["base", "buffer", "policy", "control", "decide", "api"]
PROGRAM = ["graph", "partition", "comm", "sample", "nn", "trace", "train", "report", "agent", "cli"]
LAYERS = LIBRARY + PROGRAM
FOREIGN = re.compile(r"^(mpi|cblas|metis|zlib|zstd|cjson/.*|curl/.*|llama|ggml.*)\.h$")


def main():
    passed, failures = 0, []
    for folder in sorted(os.listdir(os.path.join(ROOT, "src"))):
        if folder not in LAYERS:
            failures.append("src/%s: not a layer; expected one of %s" % (folder, " ".join(LAYERS)))
            continue
        for name in sorted(os.listdir(os.path.join(ROOT, "src", folder))):
            if not name.endswith((".c", ".h")):
                continue
            with open(os.path.join(ROOT, "src", folder, name)) as file:
                includes = re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', file.read(), re.M)
            for include in includes:
                passed += 1
                layer = include.split("/")[0]
                if layer in LAYERS and "/" in include and LAYERS.index(layer) > LAYERS.index(folder):
                    failures.append("src/%s/%s includes %s, which is above it" % (folder, name, include))
                if folder in LIBRARY and FOREIGN.match(include):
                    failures.append("src/%s/%s includes %s, but librudder has no dependencies" % (folder, name, include))
    for failure in failures:
        print("FAIL " + failure)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
