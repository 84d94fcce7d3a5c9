#!/bin/bash
# build_llama.sh [--cached] [FOLDER]: llama.cpp as static libraries for the machine at hand, built once.
# Comes from the source package of llama-cpp-python, a pinned version whose SHA-256 is checked. The result lies in
# FOLDER (default: the user's cache) under a key of version, flags and processor: include/*.h and lib/*.a. The last line
# is its path. With --cached nothing is built: it fails when the result is not there.
set -euo pipefail

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
cached=0
if [ "${1:-}" = --cached ]; then
    cached=1
    shift
fi
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}
folder=${1:-$cache/rudder/llama}

# No OpenMP (its threads spin), no AMX (the kernels crash when gcc 12 compiles them, and their weights cost 1 GB more).
no_amx='-mno-amx-tile -mno-amx-int8 -mno-amx-bf16'
[ "$(uname -m)" = x86_64 ] || no_amx=''
flags=(-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DGGML_NATIVE=ON
       -DGGML_OPENMP=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF
       -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF
       -DLLAMA_USE_PREBUILT_UI=OFF "-DCMAKE_C_FLAGS=$no_amx" "-DCMAKE_CXX_FLAGS=$no_amx")
compiler=$(${CC:-cc} -dumpfullversion -dumpversion 2>/dev/null || echo none)
processor=$(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || uname -m)
key=$(printf '%s\n' "$version" "${flags[@]}" "$compiler" "$processor" | sha256sum | cut -c1-12)
result=$folder/$version-$key

if [ -f "$result/lib/libllama.a" ]; then
    echo "$result"
    exit 0
fi
[ $cached = 0 ] || { echo "build_llama.sh: $result is not there" >&2; exit 1; }

mkdir -p "$folder"
work=$(mktemp -d "$folder/.build-XXXXXX")
log=$work/log
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() { # step WHAT COMMAND...: runs quietly, shows the end of the log when it fails
    local what=$1
    shift
    echo "llama.cpp: $what" >&2
    if ! "$@" >>"$log" 2>&1; then
        echo "build_llama.sh: $what failed; the end of its log:" >&2
        tail -n 40 "$log" >&2
        exit 1
    fi
}

for tool in python3 cmake c++; do
    command -v $tool >/dev/null || { echo "build_llama.sh: $tool is needed and was not found" >&2; exit 1; }
done
step "downloading the source (75 MB)" python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir \
    --no-deps --no-binary llama-cpp-python --dest "$work" "llama-cpp-python==$version"
archive=$(echo "$work"/llama_cpp_python-$version.tar.gz)
found=$(sha256sum "$archive" | cut -d' ' -f1)
if [ "$found" != $sha256 ]; then
    echo "build_llama.sh: llama-cpp-python $version: expected SHA-256 $sha256, found $found" >&2
    exit 1
fi
step "unpacking" tar -xzf "$archive" -C "$work"
source=$work/llama_cpp_python-$version/vendor/llama.cpp
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
step "configuring" cmake -S "$source" -B "$work/b" "${generator[@]}" "${flags[@]}"
step "building (minutes)" cmake --build "$work/b" --target llama --parallel "${RUDDER_BUILD_JOBS:-$(nproc)}"

mkdir -p "$work/result/include" "$work/result/lib"
cp "$source/include/llama.h" "$source"/ggml/include/*.h "$work/result/include/"
cp "$source/LICENSE" "$work/result/"
for library in libllama libggml libggml-cpu libggml-base; do
    file=$(find "$work/b" -name "$library.a" | head -n 1)
    [ -n "$file" ] || { echo "build_llama.sh: $library.a was not built" >&2; tail -n 20 "$log" >&2; exit 1; }
    cp "$file" "$work/result/lib/"
done
# Whoever is first wins; a second build of the same key is thrown away.
mv -T "$work/result" "$result" 2>/dev/null || [ -f "$result/lib/libllama.a" ]
echo "$result"
