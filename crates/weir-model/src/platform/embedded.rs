//! The files of `platforms/`, compiled in, so that Weir knows them wherever it runs.

macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../../platforms/", $folder, $name, ".toml")),
        ),)+]
    };
}

/// Hosts and devices.
pub(super) const PLATFORMS: &[(&str, &str)] = files!("":
    "emr2s", "spr2s", "skx2s", "skx8s", "memo", "memo-snc4", "memo2s", "interplay-a", "interplay-b", "miku-a", "miku-b",
    "micro23", "micro23-snc4", "eurosys24", "spr8480", "sap22", "sap23", "gold6130", "hotstorage22",
    "streamer", "streamer-ddr4", "streamer-card",
    "cxl-a", "cxl-b", "cxl-c", "cxl-d",
    "agilex-2666", "agilex-2x2666", "agilex-2400", "montage", "micron-x8",
    "micro23-a", "micro23-b", "micro23-c", "leo-x16", "sap22-card", "sap23-card",
    "cxl-ssd-znand", "cxl-ssd-tlc", "hotstorage22-ssd", "cxl-anns", "cxl-anns-device",
    "ssd-nvme4", "ssd-sas12",
);

/// What hosts of one microarchitecture have in common.
pub(super) const CORES: &[(&str, &str)] = files!("cores/":
    "skylake-server", "sapphire-rapids", "emerald-rapids", "zen4",
);

/// What devices with one kind of controller have in common.
pub(super) const CONTROLLERS: &[(&str, &str)] = files!("controllers/": "asic", "fpga");

/// What all hosts have in common.
pub(super) const HOST_DEFAULTS: &str = include_str!("../../../../platforms/defaults/host.toml");

/// What all devices have in common.
pub(super) const DEVICE_DEFAULTS: &str = include_str!("../../../../platforms/defaults/cxl.toml");
