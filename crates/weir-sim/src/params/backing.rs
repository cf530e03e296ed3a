//! A medium behind the DRAM of a device.

use weir_model::platform::{Backing, Replacement, WritePolicy};
use weir_model::units::Bytes;

use crate::clock::{Ps, ps};
use crate::memory::{BackingConfig, BlockConfig, FlashConfig, PageCacheConfig, WearConfig};

/// Constants of a medium that holds `capacity`.
pub(super) fn backing(b: &Backing, capacity: Bytes) -> BackingConfig {
    let (page, unit) = (b.page.get(), b.unit.get());
    let dies = *b.dies * *b.planes;
    let together = (unit / page).max(1) as u32;
    let erase = b.erase.as_ref().map_or(0, |erase| ps(**erase));
    let blocks = b.block.as_ref().map(|pages| BlockConfig {
        pages: **pages * together,
        of_die: capacity.get() / page / u64::from(dies),
        spare: *b.spare,
        collect_at: *b.collect_at,
        collect_to: *b.collect_to,
        // A run of milliseconds wears nothing that is new.
        wear: (b.endurance.as_ref())
            .filter(|_| *b.worn > 0.0)
            .map(|endurance| WearConfig {
                endurance: **endurance,
                spread: *b.endurance_spread,
                worn: *b.worn,
            }),
    });
    let ways = *b.ways as usize;
    BackingConfig {
        page_bits: b.page.lines().max(1).ilog2(),
        cache: PageCacheConfig {
            sets: (b.cache.get() / page / ways as u64).max(1),
            ways,
            random: *b.replacement == Replacement::Random,
        },
        misses: *b.misses,
        firmware: ps(*b.firmware),
        failing: *b.failing,
        writes_through: *b.write == WritePolicy::Through,
        flash: FlashConfig {
            dies,
            channels: *b.channels,
            read: ps(*b.read),
            program: ps(*b.program),
            spread: (page / unit).max(1) as u32,
            together,
            cross: ps(b.channel_rate.line_time()) * (page / 64) as Ps,
            programs: *b.write_backs,
            suspend: ps(*b.suspend),
            erase,
            blocks,
        },
    }
}
