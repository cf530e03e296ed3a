# The guest's file system: two archives one after the other, of which only the second differs
# between scenarios.

# The libraries that a program is linked to; a static one has none.
libraries_of() { # FILE
    ldd "$1" 2>/dev/null | grep -oE '/[^ ]+\.so[^ ]*' || true
}

archive() { # FOLDER FILE
    (cd "$1" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null) >"$2"
}

# The kernel as it is in memory, which QEMU starts by its note for PVH: an emulator takes seconds to unpack it. The packed
# one where it is packed in another way or there is no zstd (Documentation/arch/x86/boot.rst: setup_sects, payload_offset
# and payload_length; the last four bytes are its size).
kernel_image() { # FILE
    local packed sectors offset length
    packed=$(echo "$root"/boot/vmlinuz-*)
    sectors=$(od -A n -t u1 -j 497 -N 1 "$packed")
    read -r offset length < <(od -A n -t u4 -j $((0x248)) -N 8 "$packed")
    grep -q '^CONFIG_PVH=y' "$root"/boot/config-* &&
        head -c $(((sectors + 1) * 512 + offset + length - 4)) "$packed" | tail -c $((length - 4)) | zstd -q -d -c >"$1" 2>/dev/null ||
        ln -sf "$packed" "$1"
}

# Busybox, jq, migratepages, the kernel's modules, and the weir that users get.
base_image() { # FILE
    local to=$scratch/base release library
    release=$(basename "$root"/boot/vmlinuz-*)
    release=${release#vmlinuz-}
    mkdir -p "$to"/{bin,lib,lib64,proc,sys,dev,tmp,etc,vm}
    cp "$root/bin/busybox" "$to/bin/"
    # Not onto itself.
    local applet
    for applet in $("$root/bin/busybox" --list); do [[ $applet == busybox ]] || ln -s busybox "$to/bin/$applet"; done
    cp "$root/usr/bin/migratepages" "$to/bin/"
    cp -L "$root"/usr/lib/x86_64-linux-gnu/libnuma.so.? "$to/lib/"
    # It starts eight times faster than jq, which takes 0.65 s in a guest.
    cp "$root/usr/bin/gojq" "$to/bin/jq"
    local file
    while read -r file; do cp -nL "$file" "$to/lib/"; done < <(libraries_of "$to/bin/jq"; libraries_of "$root/usr/bin/migratepages"; libraries_of "$weir")
    cp -L "$(ldd "$root/usr/bin/migratepages" | grep -oE '/[^ ]*/ld-linux-x86-64[^ ]*')" "$to/lib64/"
    cp "$weir" "$to/bin/weir"
    local module
    for module in cxl/cxl_{acpi,pci,mem} dax/{device_dax,dax_cxl,kmem} nvdimm/{libnvdimm,nd_btt,nd_pmem,nd_e820}; do
        "$root/bin/busybox" xz -dc "$root/lib/modules/$release/kernel/drivers/$module.ko.xz" >"$to/lib/${module#*/}.ko"
    done
    echo 'root:x:0:0::/tmp:/bin/sh' >"$to/etc/passwd"
    echo 'user:x:1000:1000::/tmp:/bin/sh' >>"$to/etc/passwd"
    cp "$here/guest/init" "$to/init"
    cp "$here/guest/check.sh" "$to/vm/"
    chmod +x "$to/init"
    archive "$to" "$1"
}

# The base and the scenarios of one boot, with the programs of this host that they need.
image_of() { # BASE FILE SCENARIO...
    local base=$1 image=$2 to=$2.tree name program file
    shift 2
    mkdir -p "$to"/{bin,lib,vm/scenarios}
    for name in "$@"; do
        for program in $(needed_programs "$name"); do
            cp -L "$(command -v "$program")" "$to/bin/"
            while read -r file; do cp -nL "$file" "$to/lib/"; done < <(libraries_of "$(command -v "$program")")
        done
        if runs_on_host "$name"; then
            cp "$here/guest/agent.sh" "$to/vm/scenarios/$name"
            cp "$root/usr/bin/numactl" "$to/bin/"
        else
            { echo '. /vm/check.sh'; cat "$here/scenarios/$name"; echo; echo leave; } >"$to/vm/scenarios/$name"
        fi
    done
    archive "$to" "$image.cpio"
    cat "$base" "$image.cpio" >"$image"
    rm -r "$to" "$image.cpio"
}
