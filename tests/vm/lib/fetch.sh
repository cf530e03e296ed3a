# What a guest is made of, by package name, unpacked below $cache. Nothing is installed.

# The parts of apt that would touch the system, moved below the cache. An empty list of installed
# packages makes apt fetch every library too, so that the cache runs on any distribution's libc.
apt_here() {
    "$1" -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$cache/apt/sources" \
        -o Dir::State="$cache/apt" -o Dir::State::status=/dev/null -o Dir::State::lists="$cache/apt/lists" \
        -o Dir::Cache="$cache/apt" -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
        -o APT::Install-Recommends=no "${@:2}"
}

# The system's own sources, and next to its first the suite of backports: a QEMU that gives a CXL
# device ordinary memory is newer than some releases.
write_sources() {
    mkdir -p "$cache"/apt/{sources,lists/partial,archives/partial}
    cp /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list \
        "$cache/apt/sources/" 2>/dev/null || true
    local mirror suite
    mirror=$(awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { print $(2 + ($2 ~ /^\[/)); exit }' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null) || true
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [[ $mirror && $suite ]] || return 0
    cat > "$cache/apt/sources/backports.sources" <<SOURCE
Types: deb
URIs: $mirror
Suites: $suite-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCE
}

# The kernel package that a meta package stands for today.
kernel_package() {
    local meta
    for meta in linux-image-6.12-cloud-amd64 linux-image-cloud-amd64; do
        apt_here apt-cache depends "$meta" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }' | grep . && return
    done
}

# Fetches and unpacks once; later calls find the cache whole.
fetch() {
    root=$cache/root
    [[ -e $cache/complete && -e $root/usr/bin/gojq ]] && return 0
    [[ $(uname -m) == x86_64 ]] || cannot "the guest is an x86-64 machine, and its packages are for one"
    command -v apt-get >/dev/null || cannot "there is no apt-get to fetch QEMU and a kernel with"
    say "fetching QEMU, a kernel and tools into $cache"
    rm -rf "$cache"
    write_sources
    apt_here apt-get update >"$cache/apt/log" 2>&1 || cannot "apt-get update failed; see $cache/apt/log"
    local suite kernel
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    kernel=$(kernel_package) || cannot "no cloud kernel package is known to apt"
    {
        apt_here apt-get -y -d -t "$suite-backports" install qemu-system-x86 &&
            apt_here apt-get -y -d install busybox-static jq gojq numactl &&
            (cd "$cache/apt/archives" && apt_here apt-get download "$kernel")
    } >>"$cache/apt/log" 2>&1 || cannot "the packages cannot be had; see $cache/apt/log"
    mkdir -p "$root"
    local package
    for package in "$cache"/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    rm -rf "$cache"/apt/{archives,lists}
    fetched qemu-system-x86_64 --version >/dev/null || cannot "the QEMU that was fetched does not start"
    touch "$cache/complete"
}

# Runs a fetched program with the libraries that were fetched with it.
fetched() {
    local program=$1
    shift
    "$root/lib64/ld-linux-x86-64.so.2" \
        --library-path "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu" \
        "$root/usr/bin/$program" "$@"
}
