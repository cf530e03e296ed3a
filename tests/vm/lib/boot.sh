# One guest, from switching it on to its last line.

# What every guest's kernel is told. On a busy host the emulator may be too slow for the kernel's check of the timer at boot, which
# then panics. Neither random addresses nor tests of its ciphers are of use here.
kernel_words=(console=ttyS0 quiet panic=-1 no_timer_check nokaslr cryptomgr.notests vm.online=online_movable)

# Boots the guest of scenarios that share one. The first one's name has its console in NAME.log and its results in
# NAME.json, a document a line. Each further scenario has two minutes more.
boot() { # NAME...
    local name=$1 machine disk_file=$scratch/$1.disk within=$((limit + 120 * ($# - 1)))
    if runs_on_host "$name"; then
        : >"$logs/$name.qemu"
        export root scratch logs here weir
        exec timeout --kill-after=10 "$limit" "$here/host/run" "$name" </dev/null >"$logs/$name.log" 2>&1
    fi
    machine_of "$(machine_name "$name")"
    image_of "$scratch/base.cpio" "$scratch/$name.image" "$@"
    exec timeout --kill-after=5 "$within" "$root/lib64/ld-linux-x86-64.so.2" \
        --library-path "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu" \
        "$root/usr/bin/qemu-system-x86_64" "${machine[@]}" \
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu" \
        -nodefaults -display none -monitor none -no-reboot \
        -chardev "file,id=console,path=$logs/$name.log" -serial chardev:console \
        -chardev "file,id=results,path=$logs/$name.json" -serial chardev:results \
        -kernel "$scratch/kernel" -initrd "$scratch/$name.image" -append "${append[*]}" \
        </dev/null >"$logs/$name.qemu" 2>&1
}

# Whether a scenario runs on this host, and boots its guests itself.
runs_on_host() { # SCENARIO
    [[ $(machine_name "$1") == host ]]
}

# The machine that a scenario names in its first word.
machine_name() { # SCENARIO
    sed -n 's/^machine  *//p' "$here/scenarios/$1" | head -1
}

# Whether a scenario leaves its guest as it was, so that others of its machine can share the boot.
is_tidy() { # SCENARIO
    grep -q '^tidy$' "$here/scenarios/$1"
}

# The programs of this host that a scenario needs in its guest, a line each.
needed_programs() { # SCENARIO
    sed -n 's/^needs  *//p' "$here/scenarios/$1"
}

# The first of them that is not here.
lacking_program() { # SCENARIO
    local program
    for program in $(needed_programs "$1"); do
        command -v "$program" >/dev/null || { echo "$program"; return 0; }
    done
    return 1
}
