#!/usr/bin/env bash
# An installed librudder: headers alone as C11 and C++, pkg-config, CMake package, shared and static, nothing but rudder_*.
set -u
source_dir=${RUDDER_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name: $*"
        cat "$work/log"
    fi
}
only_rudder() { # FILE NM-OPTION: every symbol that others can link begins with rudder_
    local others
    others=$(nm "$2" --defined-only --extern-only "$1" | awk 'NF == 3 { print $3 }' | grep -v '^rudder_')
    [ -z "$others" ] || { echo "unexpected: $others"; return 1; }
    nm "$2" --defined-only --extern-only "$1" | grep -q ' rudder_open$'
}

check configure cmake -S "$source_dir" -B "$work/build" -DRUDDER_PROGRAM=OFF -DRUDDER_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$work/prefix"
check build cmake --build "$work/build" -j 2
check install cmake --install "$work/build"
prefix=$work/prefix
lib=$(dirname "$(find "$prefix" -name librudder.so)")
for header in "$prefix"/include/rudder/*.h; do
    check "C11 $(basename "$header")" gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" "$header"
    check "C++ $(basename "$header")" g++ -x c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$header"
done
check "shared: only rudder_*" only_rudder "$lib/librudder.so" -D
check "static: only rudder_*" only_rudder "$lib/librudder.a" -g
check "no dependencies" bash -c "! readelf -d '$lib/librudder.so' | grep NEEDED | grep -vE 'libc\.so|libm\.so|libpthread'"
export PKG_CONFIG_PATH=$lib/pkgconfig
for example in "$source_dir"/examples/*.c; do
    name=$(basename "$example" .c)
    check "shared $name" bash -c "gcc -std=c11 '$example' -o '$work/$name' \$(pkg-config --cflags --libs rudder)"
    check "run shared $name" env LD_LIBRARY_PATH="$lib" "$work/$name"
    check "static $name" bash -c "gcc -std=c11 '$example' -o '$work/$name-static' \$(pkg-config --cflags rudder) '$lib/librudder.a' -lpthread -lm"
    check "run static $name" "$work/$name-static"
done
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(Rudder 0.1 REQUIRED)
add_executable(user $source_dir/examples/embed.c)
target_link_libraries(user Rudder::rudder)
CMAKE
check "CMake package" cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix"
check "CMake build" cmake --build "$work/user/build"
check "CMake run" "$work/user/build/user"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
