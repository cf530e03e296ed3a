# The words of a machine file: they gather QEMU's arguments and what the guest does before a
# scenario. Performance is a label here: an emulator gives all plain memory the same speed.

begin_machine() {
    memory_mib=0 nodes=0 bridges=0 devices=0 switches=0 windows=0 hmat=yes
    board=q35,cxl=on parts=() links=()
    append=("${kernel_words[@]}")
}

# --- the firmware, which comes before all else ---

# It describes neither latency nor bandwidth.
no_hmat() { hmat=no; }

# --- memory ---

# Node 0, with both processors.
dram() { # MIB
    node "$1" cpus=0-1
    performance 0 100 40G
}

# A node without processors, and not CXL.
plain() { # MIB
    node "$1" $([[ $hmat == no ]] || echo initiator=0)
    performance $((nodes - 1)) 250 20G
}

node() { # MIB OPTION...
    parts+=(-object "memory-backend-ram,id=m$nodes,size=$1M"
        -numa "node,nodeid=$nodes,memdev=m$nodes${2:+,$2}")
    memory_mib=$((memory_mib + $1)) nodes=$((nodes + 1))
}

# What the HMAT says of a node as seen from node 0. QEMU wants it after every node.
performance() { # NODE NANOSECONDS RATE
    [[ $hmat == yes ]] || return 0
    local to="initiator=0,target=$1,hierarchy=memory"
    links+=(-numa "hmat-lb,$to,data-type=access-latency,latency=$2"
        -numa "hmat-lb,$to,data-type=access-bandwidth,bandwidth=$3")
}

# --- CXL ---

# A host bridge. A generic port carries what the HMAT says of the way to it.
bridge() { # NAME
    parts+=(-device "pxb-cxl,bus_nr=$((12 + 64 * bridges)),bus=pcie.0,id=$1")
    if [[ $hmat == yes ]]; then
        parts+=(-numa "node,nodeid=$nodes" -object "acpi-generic-port,id=port-$1,pci-bus=$1,node=$nodes")
        performance "$nodes" 300 10G
        nodes=$((nodes + 1))
    fi
    bridges=$((bridges + 1))
}

# A switch below a host bridge.
switch() { # NAME BRIDGE
    local slot=$((32 + switches))
    parts+=(-device "cxl-rp,port=$switches,bus=$2,id=root-$1,chassis=1,slot=$slot"
        -device "cxl-upstream,bus=root-$1,id=$1")
    switches=$((switches + 1)) switch_names+=" $1 "
}

# A Type-3 device of volatile memory below a bridge or a switch. Guests that name one file share its memory.
device() { # MIB ABOVE [FILE]
    local port=cxl-rp backend=${3:+file,mem-path=$3}
    backend=${backend:-ram}
    [[ ${switch_names:-} == *" $2 "* ]] && port=cxl-downstream
    parts+=(-device "$port,port=$devices,bus=$2,id=port-$devices,chassis=0,slot=$((2 + devices))"
        -object "memory-backend-$backend,id=cxl-memory-$devices,share=on,size=$1M"
        -device "cxl-type3,bus=port-$devices,volatile-memdev=cxl-memory-$devices,sn=0x$((devices + 1))")
    devices=$((devices + 1))
}

# A window of physical addresses, interleaved over bridges. The guest makes one region of it.
window() { # BRIDGE...
    local place=0 name
    for name in "$@"; do
        board+=",cxl-fmw.$windows.targets.$place=$name"
        place=$((place + 1))
    done
    board+=",cxl-fmw.$windows.size=4G"
    windows=$((windows + 1))
}

# --- storage ---

# An NVMe device in $disk_file, empty at every boot. The guest sees nvme0n1.
disk() { # MIB
    rm -f "$disk_file"
    truncate -s "$1M" "$disk_file"
    parts+=(-blockdev "driver=file,filename=$disk_file,node-name=disk"
        -device "nvme,bus=pcie.0,drive=disk,serial=scratch")
}

# A part of DRAM that the kernel takes for persistent memory. A scenario loads the drivers; it is /dev/pmemN then, and a
# file system on it may be mounted with DAX.
pmem() { # MIB FROM_MIB
    append+=("memmap=$1M!$2M")
}

# --- the guest, before its scenario ---

# Its CXL memory is ordinary memory to the kernel, which puts its own structures there too.
not_movable() { append+=(vm.online=online); }

# Nothing makes a region of the device.
no_regions() { append+=(vm.regions=no); }

# The CXL drivers stay unloaded.
no_modules() { append+=(vm.modules=no); }

# QEMU's arguments for the machine of this name, in the array `machine`.
machine_of() { # NAME
    begin_machine
    switch_names=
    # shellcheck source=/dev/null
    . "$here/machines/$1"
    [[ $hmat == yes ]] && board+=,hmat=on
    # The kernel flushes caches before it commits a region, and refuses to do that below a
    # hypervisor. Without the flags for fast strings it clears pages word by word, and not byte by
    # byte: each access to emulated CXL memory is a call.
    machine=(-M "$board" -accel tcg,thread=multi -smp 2 -m "${memory_mib}M"
        -cpu max,-hypervisor,-erms,-fsrm,-fzrm,-fsrs,-fsrc
        "${parts[@]}" "${links[@]}")
}
