# The words of a scenario that runs on the host.

declare -A processes=() to_guest=() from_guest=()

report() { # JSON
    printf '%s\n' "$1" >>"$results"
}

# These are for the runner to read.
machine() { :; }
needs() { :; }

# The command to test, by the name that users know.
weir() {
    "$weir" "$@"
}

# Runs a command: its output is in $out, what it said on standard error in $said, and its exit code in $code. The
# document that it printed is what `json` looks into.
run() { # COMMAND...
    echo "\$ $*"
    code=0
    "$@" >"$work/out" 2>"$work/said" || code=$?
    out=$(<"$work/out") said=$(<"$work/said")
    head -c 3000 "$work/out"
    head -c 2000 "$work/said"
    echo "(exit code $code)"
}

# What jq finds in the document of the last `run`.
json() { # FILTER
    fetched jq -r "$1" "$work/out"
}

# Says whether what was seen is what was wanted.
check() { # WHAT SEEN is|has|lacks|above|below|between WANTED [WANTED]
    local passed=false
    case $3 in
    is) [[ $2 == "$4" ]] && passed=true ;;
    has) [[ $2 == *"$4"* ]] && passed=true ;;
    lacks) [[ $2 != *"$4"* ]] && passed=true ;;
    above) awk -v a="$2" -v b="$4" 'BEGIN { exit !(a != "" && a + 0 > b + 0) }' && passed=true ;;
    below) awk -v a="$2" -v b="$4" 'BEGIN { exit !(a != "" && a + 0 < b + 0) }' && passed=true ;;
    between) awk -v a="$2" -v b="$4" -v c="$5" 'BEGIN { exit !(a != "" && a + 0 >= b + 0 && a + 0 <= c + 0) }' && passed=true ;;
    esac
    $passed && echo "ok      $1 ($SECONDS s): $2" || echo "FAILED  $1: saw '$2', wanted: $3 '$4${5:+ $5}' ($SECONDS s)"
    report "$(fetched jq -nc --arg check "$1" --argjson passed $passed --arg seen "${2:0:2000}" \
        --arg wanted "$3 $4${5:+ $5}" '{check: $check, passed: $passed, seen: $seen, wanted: $wanted}')"
}

# --- guests ---

# QEMU and all of a guest but its memory, nodes and processors, in the array `emulator`. Its kernel does nothing with CXL
# devices, unless `guest_words` says otherwise.
emulator_of() { # GUEST
    emulator=("$root/lib64/ld-linux-x86-64.so.2"
        --library-path "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu"
        "$root/usr/bin/qemu-system-x86_64"
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu"
        -M "${board:-q35}" -accel tcg,thread=multi -cpu max,-hypervisor,-erms,-fsrm,-fzrm,-fsrs,-fsrc
        -nodefaults -display none -monitor none -no-reboot
        -chardev "file,id=console,path=$work/$1.log" -serial chardev:console
        -chardev "pipe,id=agent,path=$work/$1" -serial chardev:agent
        -kernel "$scratch/kernel" -initrd "$work/image"
        -append "${kernel_words[*]} memhp_default_state=online_movable ${guest_words:-vm.modules=no vm.regions=no}")
}

# Starts a guest by a command that ends in QEMU. `awaited` waits until it can be asked.
begin() { # GUEST COMMAND...
    local fd
    rm -f "$work/$1".{in,out}
    mkfifo "$work/$1".{in,out}
    exec {fd}<>"$work/$1.in"
    to_guest[$1]=$fd
    exec {fd}<>"$work/$1.out"
    from_guest[$1]=$fd
    echo "== guest $1 begins"
    "${@:2}" </dev/null >"$work/$1.said" 2>&1 &
    processes[$1]=$!
}

# Waits for a line of a guest; fails if there is none before it ends.
line_of() { # GUEST
    until read -r -t 1 -u "${from_guest[$1]}" line; do
        kill -0 "${processes[$1]}" 2>/dev/null || return 1
    done
}

awaited() { # GUEST
    local line=
    until [[ $line == ready ]]; do
        line_of "$1" || { echo "guest $1 ended: $(tail -n 3 "$work/$1.said" "$work/$1.log")"; exit 1; }
    done
    echo "== guest $1 is ready after $SECONDS s"
}

# What a line of shell prints in a guest.
in_guest() { # GUEST LINE
    local line
    printf '%s\n' "$2" >&"${to_guest[$1]}"
    while line_of "$1"; do
        [[ $line == '@@ done' ]] && return
        printf '%s\n' "$line"
    done
}

# Seconds of processor time that a guest has taken so far.
processor_seconds() { # GUEST
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); split($0, f, " "); printf "%.1f", (f[12] + f[13]) / tick }' \
        "/proc/${processes[$1]}/stat"
}

# The memory of a guest's node, in MiB, without what its kernel keeps for itself.
node_mib() { # GUEST NODE
    in_guest "$1" "awk '/MemTotal/ { printf \"%d\\n\", \$4 / 1024 }' /sys/devices/system/node/node$2/meminfo 2> /dev/null || echo 0"
}

end_guests() {
    local guest
    for guest in "${!processes[@]}"; do
        kill -KILL "${processes[$guest]}" 2>/dev/null
        wait "${processes[$guest]}" 2>/dev/null
        echo "== the last lines of guest $guest"
        tail -n 5 "$work/$guest.said" "$work/$guest.log"
    done
    rm -rf "$work"
}
