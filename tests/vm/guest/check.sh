# The words of a scenario, in the guest.

# A text as JSON.
quoted() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\t\r' '  ' | sed 's/[\\"]/\\&/g' | sed ':a;N;$!ba;s/\n/\\n/g')"
}

report() { # JSON
    echo "$1" > /dev/ttyS1
}

# The machine that a scenario wants is for the host to read.
machine() { :; }

# Runs a command: its output is in $out, what it said on standard error in $said, and its exit code
# in $code. The document that it printed is what `json` looks into.
run() { # COMMAND...
    echo "\$ $*"
    code=0
    timeout 100 "$@" > /tmp/out 2> /tmp/said || code=$?
    out=$(cat /tmp/out) said=$(cat /tmp/said)
    head -c 3000 /tmp/out
    head -c 2000 /tmp/said
    echo "(exit code $code)"
}

# What jq finds in the document of the last `run`.
json() { # FILTER
    jq -r "$1" /tmp/out
}

# Says whether what was seen is what was wanted.
check() { # WHAT SEEN is|has|lacks|above|below|between WANTED
    passed=false
    case $3 in
    is) [ "$2" = "$4" ] && passed=true ;;
    has) case $2 in *"$4"*) passed=true ;; esac ;;
    lacks) case $2 in *"$4"*) ;; *) passed=true ;; esac ;;
    above) awk -v a="$2" -v b="$4" 'BEGIN { exit !(a != "" && a + 0 > b + 0) }' && passed=true ;;
    below) awk -v a="$2" -v b="$4" 'BEGIN { exit !(a != "" && a + 0 < b + 0) }' && passed=true ;;
    esac
    $passed && echo "ok      $1" || echo "FAILED  $1: saw '$2', wanted: $3 '$4'"
    report "{\"check\":$(quoted "$1"),\"passed\":$passed,\"seen\":$(quoted "$(printf '%s' "$2" | head -c 2000)"),\"wanted\":$(quoted "$3 $4")}"
}

# --- the kernel's own view ---

# The node of the first region's memory.
cxl_node() { cat "/sys/bus/dax/devices/dax${1:-0}.0/target_node"; }

# Bytes of memory on a node.
memory_of() { # NODE
    awk '/MemTotal/ { print $4 * 1024 }' "/sys/devices/system/node/node$1/meminfo"
}
