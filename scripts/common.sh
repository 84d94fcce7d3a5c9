# What ./quickstart and ./test share: messages, packages, the build. Sourced by bash; needs $root.
set -euo pipefail

logs=$root/build/logs
mkdir -p "$logs"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
else
    bold='' plain=''
fi

say() { printf '%s[%3d s]%s %s\n' "$bold" "$SECONDS" "$plain" "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# run LOG COMMAND...: quiet unless it fails; then the end of the log is shown.
run() {
    local log=$logs/$1.log
    shift
    if ! "$@" >"$log" 2>&1 </dev/null; then
        printf 'error: failed: %s\n' "$*" >&2
        tail -n 25 "$log" >&2
        printf 'error: the whole log is in %s\n' "$log" >&2
        return 1
    fi
}

packages_build="gcc g++ make cmake ninja-build pkg-config binutils python3 libopenmpi-dev openmpi-bin libmetis-dev
    libopenblas-dev zlib1g-dev libzstd-dev libcjson-dev wordnet-base libcmocka-dev"
packages_full="libmpich-dev mpich clang clang-format libclang-rt-14-dev chromium fonts-dejavu-core"

# install_packages NAME...: those that are missing, by apt-get; sudo where we are not root.
install_packages() {
    local missing=() name
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
    done
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "these packages are missing and need root: apt-get install ${missing[*]}"
        sudo=(sudo)
    fi
    say "installing packages: ${missing[*]}"
    run apt-update "${sudo[@]}" apt-get update
    run apt-install "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"
}

# configure FOLDER [CMAKE OPTION...]
configure() {
    local folder=$1
    shift
    run "configure-$(basename "$folder")" cmake -S "$root" -B "$folder" -G Ninja "$@"
}

# build FOLDER [TARGET...]
build() {
    local folder=$1
    shift
    run "build-$(basename "$folder")" cmake --build "$folder" ${1:+--target "$@"}
}
