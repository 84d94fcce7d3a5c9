#!/usr/bin/env python3
"""The documents say what is there: links and file names exist, the README's C is the example that the tests run."""
import os
import re
import sys
import textwrap

ROOT = os.environ.get("RUDDER_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def main():
    passed, failures = 0, []

    def check(good, message):
        nonlocal passed
        if good:
            passed += 1
        else:
            failures.append(message)

    for document in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] + ["docs/" + n for n in sorted(os.listdir(os.path.join(ROOT, "docs")))]:
        folder = os.path.dirname(document)
        text = read(document)
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            check(os.path.exists(os.path.join(ROOT, folder, link)), "%s links to %s, which is not there" % (document, link))
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:c|h|py|sh|jsonl|md))`", text):
            places = [name, "src/" + name, "include/" + name]
            check(any(os.path.exists(os.path.join(ROOT, p)) for p in places), "%s names %s, which is not there" % (document, name))
    snippet = re.search(r"```c\n(.*?)```", read("README.md"), re.S)
    example = re.search(r"README: from here \*/\n(.*?) */\* README: to here", read("examples/embed.c"), re.S)
    check(snippet is not None and example is not None, "README.md or examples/embed.c: expected the marked lines of C")
    if snippet and example:
        check(snippet.group(1).startswith(textwrap.dedent(example.group(1)).rstrip()),
              "README.md: the C code is not that of examples/embed.c")
    for failure in failures:
        print("FAIL " + failure)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
