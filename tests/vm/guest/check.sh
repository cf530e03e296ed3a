# The words of a scenario, in the guest.

# A text as JSON, in $json. No process is started for it, which takes 20 ms in a guest.
quote() { # TEXT
    json=${1//\\/\\\\} json=${json//\"/\\\"} json=${json//$newline/\\n}
    json=\"${json//[$tab$return]/ }\"
}
newline='
' tab=$(printf '\t') return=$(printf '\r')

report() { # JSON
    echo "$1" > /dev/ttyS1
}

# Hands a file to the host, next to the results.
hand_out() { # FILE
    jq -M -c -R -s --arg name "$(basename "$1")" '{file: $name, text: .}' "$1" > /dev/ttyS1
}

# The machine that a scenario wants is for the host to read.
machine() { :; }

# The guest is to be afterwards as it was: the host shares its boot between such scenarios, and `leave` looks.
tidy() {
    before_all=$(state_of_all)
}

# What a scenario may change and must put back itself.
state_of_all() {
    cat /sys/kernel/mm/mempolicy/weighted_interleave/node* /sys/kernel/mm/numa/demotion_enabled \
        /proc/sys/kernel/numa_balancing* /sys/kernel/mm/transparent_hugepage/enabled \
        /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds /sys/devices/system/node/has_memory 2> /dev/null
    sort /proc/mounts
}

# The end of every scenario. Of one that is tidy, processes and control groups are removed, and files by the first process.
leave() {
    if [ "${before_all:-}" ]; then
        kill -KILL -1
        wait
        groups=/sys/fs/cgroup tries=0
        until rmdir $(find $groups -mindepth 1 -depth -type d) 2> /dev/null || [ $tries -gt 40 ]; do
            [ "$(find $groups -mindepth 1 -type d)" ] || break
            pause 0.05
            tries=$((tries + 1))
        done
        for controller in $(cat $groups/cgroup.subtree_control); do echo "-$controller" > $groups/cgroup.subtree_control; done
        check "the guest is as it was" "$(state_of_all)$(cat $groups/cgroup.subtree_control)" is "$before_all"
    fi
    report '{"end":true}'
}

# Waits without a process of its own, which costs more than most of what is waited for.
pause() { # SECONDS
    read -r -t "$1" _ <&8
}
[ -p /dev/never ] || mkfifo /dev/never
exec 8<> /dev/never

# So is a program of the host that it wants in the guest.
needs() { :; }

# Runs a command: its output is in $out, what it said on standard error in $said, and its exit code
# in $code. The document that it printed is what `json` looks into.
run() { # COMMAND...
    echo "\$ $*"
    code=0
    "$@" > /tmp/out 2> /tmp/said || code=$?
    out=$(cat /tmp/out) said=$(cat /tmp/said)
    printf '%s\n' "${out:0:3000}" "${said:0:2000}"
    echo "(exit code $code)"
}

# Figures that the first run in the store has so far; empty before there is a store.
kept_figures() {
    weir runs list --format json 2> /dev/null | jq '.runs[0].kept // 0'
}

# What jq finds in the document of the last `run`.
json() { # FILTER
    jq -r "$1" /tmp/out
}

# Whether a figure is above another one; what is no figure is 0, and what is empty is above nothing.
above() { # FIGURE FIGURE
    case ${1:-x}$2 in
    *[!0-9]*) awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 > b + 0) }' ;;
    *) [ "$1" -gt "$2" ] ;;
    esac
}

# Says whether what was seen is what was wanted.
check() { # WHAT SEEN is|has|lacks|above|below|between WANTED [WANTED]
    passed=false
    case $3 in
    is) [ "$2" = "$4" ] && passed=true ;;
    has) case $2 in *"$4"*) passed=true ;; esac ;;
    lacks) case $2 in *"$4"*) ;; *) passed=true ;; esac ;;
    above) above "$2" "$4" && passed=true ;;
    between) awk -v a="$2" -v b="$4" -v c="$5" 'BEGIN { exit !(a != "" && a + 0 >= b + 0 && a + 0 <= c + 0) }' && passed=true ;;
    below) [ "$2" ] && above "$4" "$2" && passed=true ;;
    esac
    read -r up _ < /proc/uptime
    $passed && echo "ok      $1 ($up s)" || echo "FAILED  $1: saw '$2', wanted: $3 '$4${5:+ $5}' ($up s)"
    local json what seen most=2000
    quote "$1"
    what=$json
    # Replacing in a long text takes seconds in a guest: it is only kept whole where somebody will read it.
    $passed && most=100
    quote "${2:0:$most}"
    seen=$json
    quote "$3 $4${5:+ $5}"
    report "{\"check\":$what,\"passed\":$passed,\"seen\":$seen,\"wanted\":$json}"
}

# --- a Weir that keeps memory, to be looked at from outside ---

# Starts a command that holds memory, and waits until it does: $pid, $address.
hold() { # COMMAND...
    echo "\$ $* &"
    # What the last one said would be taken for this one's.
    rm -f /tmp/out /tmp/said
    "$@" > /tmp/out 2> /tmp/said &
    pid=$!
    tries=0
    until grep -q ' holds .* s$' /tmp/said 2> /dev/null || [ $tries -gt 200 ] || ! [ -d /proc/$pid ]; do
        pause 0.1
        tries=$((tries + 1))
    done
    # The process may stand behind a shell that started it.
    holder=$(sed -n 's/^process \([0-9]*\) holds.*/\1/p' /tmp/said)
    address=$(sed -n 's/.* at \([0-9a-f]*\) for .*/\1/p' /tmp/said)
}

# Ends what `hold` began; then as after `run`.
release() {
    kill -TERM "${holder:-$pid}"
    code=0
    wait $pid || code=$?
    out=$(cat /tmp/out) said=$(cat /tmp/said)
    echo "$out"
    echo "$said"
    echo "(exit code $code)"
}

# --- tenants ---

# A group has memory on a tier, and a process that runs in every window: a tenth of the time, since others need the rest.
# The way to the group is from $groups.
work() { # GROUP TIER [SIZE]
    sh -c '. /vm/check.sh
        echo $$ > "$1/cgroup.procs"
        weir place --tier "$2" --size "$3" --hold 900 &
        while pause 0.02 || :; do for _ in 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9; do :; done; done' \
        sh "$groups/$1" "$2" "${3:-4M}" > /dev/null 2>&1 &
}

# Waits until a process of a group has so many pages on the CXL node: a tenant without any is not limited.
until_placed() { # GROUP PAGES
    pages=0 on=$(cxl_node)
    until [ "$pages" -gt "$2" ]; do
        pause 0.5
        pages=$(cat $(sed 's,.*,/proc/&/numa_maps,' "$groups/$1/cgroup.procs") | grep -o "N$on=[0-9]*" | cut -d = -f 2 | sort -n | tail -n 1)
    done 2> /dev/null
}

# Every setting of every control group.
settings_of_groups() {
    find $groups | sort
    find $groups -type f -perm -u+w ! -name '*.pressure' ! -name '*.peak' ! -name cgroup.kill \
        ! -name memory.reclaim ! -name cgroup.procs ! -name cgroup.threads | sort | xargs grep -H '' 2>&1
}

# --- the kernel's own view ---

# Pages of the held memory on each node: `0=3072 2=1024`.
pages_by_node() {
    grep "^$address " "/proc/$holder/numa_maps" | tr ' ' '\n' | sed -n 's/^N\([0-9]*=[0-9]*\)$/\1/p' |
        sort -n | tr '\n' ' ' | sed 's/ $//'
}

# The nodes of the first pages of the held memory, one after the other, by their physical addresses.
nodes_of_pages() { # COUNT
    block=$((0x$(cat /sys/devices/system/memory/block_size_bytes) / 4096))
    dd if="/proc/$holder/pagemap" bs=8 skip=$((0x$address / 4096)) count="$1" 2>/dev/null |
        od -v -A n -t x8 | tr -s ' ' '\n' | grep . | while read -r entry; do
        frame=$((0x$(echo "$entry" | tail -c 12)))
        basename "$(ls -d /sys/devices/system/memory/memory$((frame / block))/node*)" | tr -d 'node\n'
        printf ' '
    done | sed 's/ $//'
}

# The node of a region's memory.
cxl_node() { # [REGION]
    cat "/sys/bus/cxl/devices/region${1:-0}"/dax_region*/dax*/target_node
}

# The devices of a region, by its decoders: `mem0 mem1`.
devices_of() { # REGION
    for target in /sys/bus/cxl/devices/region$1/target*; do
        endpoint=$(dirname "$(readlink -f "/sys/bus/cxl/devices/$(cat "$target")")")
        basename "$(readlink -f "$endpoint/uport")"
    done | tr '\n' ' ' | sed 's/ $//'
}

# Bytes of memory on a node.
memory_of() { # NODE
    awk '/MemTotal/ { print $4 * 1024 }' "/sys/devices/system/node/node$1/meminfo"
}

# The memory tier of a node.
memory_tier() { # NODE
    for tier in /sys/devices/virtual/memory_tiering/memory_tier*; do
        numbers "$(cat "$tier/nodelist")" | grep -qw "$1" && echo "${tier##*tier}"
    done
}

# Where the kernel last said that it demotes pages of a node to first.
demotion_of() { # NODE
    last=$(dmesg | sed -n "s/.*Demotion targets for Node $1: //p" | tail -n 1)
    case $last in
    preferred:*) numbers "$(echo "$last" | sed 's/preferred: \([^ ]*\),.*/\1/')" ;;
    esac
}

# A list of the kernel's in full: `0,2-4` is `0 2 3 4`.
numbers() { # LIST
    for part in $(echo "$1" | tr ',' ' '); do
        case $part in
        *-*) seq "${part%-*}" "${part#*-}" ;;
        *) echo "$part" ;;
        esac
    done | tr '\n' ' ' | sed 's/ $//'
}

# A latency from the raw table of a device, in ns. Kind 1 is reading, 2 writing.
cdat_ns() { # MEMDEV KIND
    for endpoint in /sys/bus/cxl/devices/endpoint*; do
        [ "$(basename "$(readlink -f "$endpoint/uport")")" = "$1" ] || continue
        od -v -A n -t u1 -j 16 "$endpoint/CDAT" | tr -s ' ' '\n' | grep . | awk -v kind="$2" '
            { byte[(NR - 1) % 24] = $1 }
            NR % 24 == 0 && byte[0] == 1 && byte[6] == kind {
                print (byte[8] + 256 * byte[9] + 65536 * byte[10]) * (byte[16] + 256 * byte[17]) / 1000
            }'
    done
}

# --- what many scenarios check ---

# A field of what the last `weir topo` says of a node.
node() { # NODE FILTER
    json ".nodes[] | select(.node == $1) | $2"
}

# Several fields at once, with `|` between them: jq takes its time to start in a guest.
fields() { # NODE FILTER...
    of=$1
    shift
    node "$of" "[$(echo "$*" | tr ' ' ',')] | map(if type == \"array\" then map(tostring) | join(\" \") else tostring end) | join(\"|\")"
}

# Whether Weir tells of a node what the kernel tells.
check_node() { # NODE TIER
    sys=/sys/devices/system/node
    IFS='|' read -r tier number below movable latency bandwidth missing <<END
$(fields "$1" .tier .memory_tier .demotes_to .movable .hmat.read_ns '(.hmat.read_gbps//0|.*1000)' .missing)
END
    check "node $1 is tier $2" "$tier" is "$2"
    check "the tier has the node's memory" "$(json ".topology.tiers[] | select(.name == \"$2\") | .capacity")" is "$(memory_of "$1")"
    check "node $1: memory tier" "$number" is "$(memory_tier "$1")"
    check "node $1: demotes to" "$below" is "$(demotion_of "$1")"
    if [ -e $sys/node$1/access0/initiators/read_latency ]; then
        check "node $1: HMAT latency" "$latency" is "$(cat $sys/node$1/access0/initiators/read_latency)"
        check "node $1: HMAT bandwidth" "$bandwidth" is "$(cat $sys/node$1/access0/initiators/read_bandwidth)"
    else
        check "node $1: why there is no HMAT" "$missing" has "HMAT: there is no"
    fi
    fixed=$(numbers "$(cat $sys/has_normal_memory)" | grep -qw "$1" && echo false || echo true)
    check "node $1: movable" "$movable" is "$fixed"
}

# Whether Weir names the region and the devices behind a node rightly.
check_cxl() { # NODE REGION
    IFS='|' read -r region memdevs bytes reading writing <<END
$(fields "$1" .region .memdevs .region_bytes '(.cdat|map(.read_ns))' '(.cdat|map(.write_ns))')
END
    devices=$(devices_of "$2")
    check "node $1 is region$2" "$region" is "region$2"
    check "behind its devices" "$memdevs" is "$devices"
    check "of its size" "$bytes" is $(($(cat /sys/bus/cxl/devices/region$2/size)))
    check "read latency by CDAT" "$reading" is "$(for memdev in $devices; do cdat_ns "$memdev" 1; done | tr '\n' ' ' | sed 's/ $//')"
    check "write latency by CDAT" "$writing" is "$(for memdev in $devices; do cdat_ns "$memdev" 2; done | tr '\n' ' ' | sed 's/ $//')"
}

# What Weir says that it lacks of a feature: why, and the remedy.
lacking() { # FEATURE
    json ".capabilities[] | select(.feature == \"$1\" and (.present | not)) | .detail + \"; \" + (.remedy // \"\")"
}

# --- other circumstances ---

# A command as a user without privileges.
as_user() { # COMMAND...
    su user -s /bin/sh -c "$*"
}

# A command in a control group with these nodes.
in_cpuset() { # NODES COMMAND...
    group=/sys/fs/cgroup/narrow
    echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control
    mkdir -p $group
    echo "$1" > $group/cpuset.mems
    shift
    sh -c 'echo $$ > /sys/fs/cgroup/narrow/cgroup.procs; exec "$@"' sh "$@"
}

# Takes a node's memory away from the kernel, its pages first.
offline() { # NODE
    for block in /sys/devices/system/node/node$1/memory[0-9]*; do
        # Pages that are in use at the moment make the kernel give up; it is asked again.
        tries=0
        until echo offline > "$block/state" 2>/dev/null || [ $tries -gt 20 ]; do
            pause 0.1
            tries=$((tries + 1))
        done
    done
}
