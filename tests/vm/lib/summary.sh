# What is seen of the scenarios: their list, their checks as they come, and their end.

list_all() {
    local kind name
    for kind in scenarios machines; do
        echo "$kind:"
        for name in $(ls "$here/$kind"); do
            sed -n '1s/^# //p' "$here/$kind/$name" | fold -s -w 58 |
                sed "1s/^/$(printf '  %-18s ' "$name")/; 2,\$s/^/$(printf '%21s')/"
        done
    done
}

declare -A reported=() again=() crashes=()

# Tells of the checks that the guest of these scenarios has made since the last look.
tell() { # NAME
    local file=$logs/$1.json lines
    [[ -e $file ]] || return 0
    # A line that is still being written has no end.
    lines=$(wc -l <"$file")
    ((lines > ${reported[$1]:-0})) || return 0
    head -n "$lines" "$file" | fetched jq -rn --argjson from "${reported[$1]:-0}" --arg name "$1" '
        foreach inputs as $said ({line: 0, name: $name};
            {line: (.line + 1), name: ($said.begin // .name)};
            select(.line > $from and $said.check)
            | "\(.name): \(if $said.passed then "ok" else "FAILED" end): \($said.check)"
              + (if $said.passed then "" else "\n    saw:    \($said.seen)\n    wanted: \($said.wanted)" end))' >&2 || true
    reported[$1]=$lines
}

# Boots every scenario in $wanted, $jobs at a time; those which leave their machine as it was share a boot. One that
# failed is booted once more, alone: QEMU without KVM is so slow on a busy host that time decides some checks. So is one,
# twice more, whose QEMU crashed, since that says nothing of Weir; those that shared its guest and had not begun share the
# next one. The table says which scenarios needed it. With
# "--put-off" the names of those that failed go to a file instead.
run_all() {
    local waiting=() failed=() name machine
    local -A shared=()
    for name in "${wanted[@]}"; do
        if is_tidy "$name" && ! lacking_program "$name" >/dev/null; then
            shared[$(machine_name "$name")]+=" $name"
        else
            waiting+=("$name")
        fi
    done
    # They take longest, and so begin first.
    for machine in "${!shared[@]}"; do waiting=("${shared[$machine]# }" "${waiting[@]}"); done
    boot_waiting
    if [[ $put_off ]]; then
        printf '%s\n' "${failed[@]}" | tr ' ' '\n' | sed '/^$/d' >"$put_off"
        return
    fi
    jobs=1
    while ((${#failed[@]})); do
        waiting=("${failed[@]}") failed=()
        boot_waiting
    done
}

# Boots every guest in $waiting, each the scenarios that share it, and lists the scenarios to boot again in $failed.
boot_waiting() {
    local lacks code names
    local -A sharing=()
    while ((${#waiting[@]} + ${#pids[@]})); do
        while ((${#waiting[@]} && ${#pids[@]} < jobs)); do
            names=${waiting[0]} name=${waiting[0]%% *} waiting=("${waiting[@]:1}")
            if lacks=$(lacking_program "$name"); then
                skip "$name" "there is no $lacks on this host"
                continue
            fi
            : >"$logs/$name.json"
            # shellcheck disable=SC2086
            boot $names &
            pids[$name]=$! began[$name]=$(date +%s%N) sharing[$name]=$names
        done
        sleep 0.2
        for name in "${!pids[@]}"; do
            tell "$name"
            kill -0 "${pids[$name]}" 2>/dev/null && continue
            took[$name]=$((($(date +%s%N) - began[$name]) / 100000000))
            code=0
            wait "${pids[$name]}" || code=$?
            unset "pids[$name]"
            tell "$name"
            conclude_all "$name" "$code"
        done
    done
}

# Whether the emulator ended by a signal of its own (abort, bus error, segmentation fault).
crashed() { # EXIT-CODE
    (($1 == 134 || $1 == 135 || $1 == 139))
}

# Takes the results of scenarios that shared a guest apart, and notes what became of each.
conclude_all() { # NAME EXIT-CODE
    local first=$1 each fails=no begun='' rest=()
    for each in ${sharing[$first]}; do
        fetched jq -cn --arg first "$first" --arg each "$each" '
            foreach inputs as $said ($first; $said.begin // .; select(. == $each and ($said.begin | not)) | $said)' \
            <"$logs/$first.json" >"$logs/$each.own"
        [[ ! -s $logs/$each.own ]] || begun+=" $each "
    done
    [[ $keep == yes ]] || rm -f "$logs/$first.json"
    for each in ${sharing[$first]}; do
        took[$each]=${took[$first]}
        mv "$logs/$each.own" "$logs/$each.json"
        conclude "$each" "$2" "$first" && continue
        if [[ $begun && $begun != *" $each "* ]]; then
            rest+=("$each")
            continue
        fi
        if crashed "$2" && ((${crashes[$each]:-0} < 2)); then
            crashes[$each]=$((${crashes[$each]:-0} + 1))
        elif [[ ${again[$each]:-} ]]; then
            fails=yes
            continue
        fi
        say "$each: boots again, alone$([[ ! $put_off ]] || echo ", later")"
        cp "$logs/$first.log" "$logs/$each.failed.log"
        unset "reported[$each]"
        again[$each]=yes failed+=("$each")
    done
    # Their guest ended before they began, which says nothing of them: they share another boot.
    if ((${#rest[@]})); then
        say "${rest[*]}: had not begun, and share another boot"
        failed+=("${rest[*]}")
    fi
    [[ $keep == yes || $fails == yes ]] || rm -f "$logs/$first.log"
    rm -f "$logs/$first.qemu" "$scratch/$first.image" "$scratch/$first.disk"
}

# Notes that a scenario is left out.
skip() { # NAME WHY
    say "$1: skipped: $2"
    fetched jq -n --arg name "$1" --arg machine "$(machine_name "$1")" --arg why "$2" \
        '{scenario: $name, machine: $machine, seconds: 0, passed: true, skipped: $why, checks: []}' >"$logs/$1.result.json"
}

# Writes what became of a scenario to NAME.result.json. Fails if the scenario did.
conclude() { # NAME EXIT-CODE FIRST-OF-ITS-GUEST
    local log=$logs/$3.log why='' passed
    if (($2 == 124 || $2 == 137)); then
        why="ended after $limit s"
    elif (($2 != 0)); then
        why="QEMU ended with exit code $2: $(tail -n 1 "$logs/$3.qemu")"
    fi
    local name
    for name in $(fetched jq -r '.file // empty' "$logs/$1.json"); do
        fetched jq -j --arg name "$name" 'select(.file == $name) | .text' "$logs/$1.json" >"$logs/$name"
    done
    fetched jq -s --arg name "$1" --arg machine "$(machine_name "$1")" --arg why "$why" \
        --argjson seconds "${took[$1]:0:-1}.${took[$1]: -1}" --arg again "${again[$1]:-}" '
        ([.[] | select(.check)]) as $checks
        | (if $why != "" then $why
           elif any(.[]; .end) | not then "the scenario did not come to its end"
           elif $checks == [] then "nothing was checked"
           else null end) as $broken
        | {scenario: $name, machine: $machine, seconds: $seconds,
           passed: ($broken == null and all($checks[]; .passed)), broken: $broken, checks: $checks}
          + if $again != "" then {again: true} else {} end' \
        <"$logs/$1.json" >"$logs/$1.result.json"
    if fetched jq -e .passed "$logs/$1.result.json" >/dev/null; then
        passed=yes
    else
        passed=no
        say "$1: FAILED $(fetched jq -r '.broken // ""' "$logs/$1.result.json"); see $log"
    fi
    [[ $keep == yes ]] || rm -f "$logs/$1.json"
    [[ $passed == yes ]]
}

# The table, and results.json next to the logs. Fails if a scenario did.
summary() {
    (cd "$logs" && fetched jq -s '{schema: "weir/vm/1", scenarios: .}' "${wanted[@]/%/.result.json}" >results.json &&
        rm "${wanted[@]/%/.result.json}")
    printf '%-24s %-18s %7s %7s  %s\n' scenario machine checks seconds outcome
    fetched jq -r --arg put_off "$put_off" '.scenarios[]
        | [.scenario, .machine, (.checks | length), .seconds,
           if .skipped then "skipped" elif .passed and .again then "passed when alone" elif .passed then "passed" elif $put_off != "" then "boots again later" else .broken // "\([.checks[] | select(.passed | not)] | length) failed" end]
        | @tsv' "$logs/results.json" |
        while IFS=$'\t' read -r name machine checks seconds outcome; do
            printf '%-24s %-18s %7s %7s  %.20s\n' "$name" "$machine" "$checks" "$seconds" "$outcome"
        done
    [[ $put_off ]] || fetched jq -e 'all(.scenarios[]; .passed)' "$logs/results.json" >/dev/null
}
