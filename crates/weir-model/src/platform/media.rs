//! DRAM timing by standard speed grade.

use crate::units::{Bytes, GbPerSec, GigaTransfers, Nanos};

crate::named! {
    /// A DRAM speed grade.
    #[allow(missing_docs)]
    pub enum Media {
        Ddr3_1600 = "ddr3-1600",
        Ddr3_1866 = "ddr3-1866",
        Ddr4_1333 = "ddr4-1333",
        Ddr4_2400 = "ddr4-2400",
        Ddr4_2666 = "ddr4-2666",
        Ddr4_2933 = "ddr4-2933",
        Ddr4_3200 = "ddr4-3200",
        Ddr5_4800 = "ddr5-4800",
        Ddr5_5600 = "ddr5-5600",
        Lpddr5_6400 = "lpddr5-6400",
    }
}

/// JEDEC timing of one independently scheduled channel (a DDR5 sub-channel counts as one; a channel of LPDDR5 has
/// 16 data pins).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediaTiming {
    /// Transfer rate of a data pin.
    pub rate: GigaTransfers,
    /// Independently scheduled halves of a channel: 2 for DDR5, 1 for others.
    pub subchannels: u32,
    /// Bytes moved in one transfer by one subchannel.
    pub width: Bytes,
    /// Column to data (tCL).
    pub cl: Nanos,
    /// Row to column (tRCD).
    pub rcd: Nanos,
    /// Precharge (tRP).
    pub rp: Nanos,
    /// Row open at least (tRAS).
    pub ras: Nanos,
    /// Write recovery (tWR).
    pub wr: Nanos,
    /// Read to precharge (tRTP).
    pub rtp: Nanos,
    /// Four activations take at least this long (tFAW).
    pub faw: Nanos,
    /// Write data to read command, other bank group (tWTR_S) and same (tWTR_L): their mean.
    pub wtr: Nanos,
    /// Read to write turnaround of the data bus.
    pub rtw: Nanos,
    /// Refresh of a rank (tRFC; DDR5: tRFC2, fine-granularity refresh), or of one bank of each group
    /// (tRFCsb).
    pub rfc: Nanos,
    /// Mean interval between refreshes of one rank or bank (tREFI; with fine-granularity refresh half
    /// of it).
    pub refi: Nanos,
    /// Whether a refresh stops the whole rank, or only one bank of each group.
    pub refresh_stops_rank: bool,
    /// Banks in a rank of one subchannel.
    pub banks: u32,
    /// Bank groups they form.
    pub bank_groups: u32,
    /// Bytes of one row of a rank of one subchannel.
    pub row: Bytes,
}

impl Media {
    /// JEDEC timing (JESD79-3, JESD79-4, JESD79-5 and JESD209-5 speed bins; dies of 4 Gb for DDR3, 8 Gb for DDR4 and
    /// 16 Gb for DDR5 and LPDDR5).
    pub const fn timing(self) -> MediaTiming {
        match self {
            // 11-11-11 and 13-13-13, the bins of registered modules.
            Media::Ddr3_1600 => ddr3(1.6, 13.75, 35.0, 30.0),
            Media::Ddr3_1866 => ddr3(1.866, 13.91, 34.0, 27.0),
            // Below the lowest bin, as slow logic drives it: 9 clocks of 1.5 ns, the least that the grade has.
            Media::Ddr4_1333 => ddr4(1.333, 13.5),
            Media::Ddr4_2400 => ddr4(2.4, 14.2),
            Media::Ddr4_2666 => ddr4(2.666, 14.25),
            Media::Ddr4_2933 => ddr4(2.933, 14.32),
            Media::Ddr4_3200 => ddr4(3.2, 13.75),
            Media::Ddr5_4800 => ddr5(4.8, 16.7, 16.3),
            Media::Ddr5_5600 => ddr5(5.6, 16.4, 16.4),
            Media::Lpddr5_6400 => lpddr5(6.4),
        }
    }
}

/// Eight banks without groups; four activations in 30 or 27 ns with pages of 1 KiB (JESD79-3F tables 68 and 69). The
/// turnaround of the bus is assumed to be DDR4's, in clocks.
const fn ddr3(rate: f64, cl: f64, ras: f64, faw: f64) -> MediaTiming {
    MediaTiming {
        ras: Nanos(ras),
        faw: Nanos(faw),
        wtr: Nanos(7.5),
        rfc: Nanos(260.0),
        banks: 8,
        bank_groups: 1,
        ..ddr4(rate, cl)
    }
}

/// A channel of 16 data pins in bank-group mode with bursts of 32. The read latency is 17 to 20 clocks of 1.25 ns, by
/// mode, of which the last is taken, as with link ECC; refresh is of all banks, where one bank at a time is possible
/// too. The turnaround of the bus is assumed to be DDR5's, in clocks.
const fn lpddr5(rate: f64) -> MediaTiming {
    MediaTiming {
        rate: GigaTransfers(rate),
        subchannels: 1,
        width: Bytes(2),
        cl: Nanos(25.0),
        rcd: Nanos(18.0),
        rp: Nanos(18.0),
        ras: Nanos(42.0),
        wr: Nanos(34.0),
        rtp: Nanos(7.5),
        faw: Nanos(20.0),
        // 6.25 and 12 ns.
        wtr: Nanos(9.1),
        rtw: Nanos(24.0 / rate),
        rfc: Nanos(280.0),
        refi: Nanos(3906.0),
        refresh_stops_rank: true,
        banks: 16,
        bank_groups: 4,
        row: Bytes(2048),
    }
}

const fn ddr4(rate: f64, cl: f64) -> MediaTiming {
    MediaTiming {
        rate: GigaTransfers(rate),
        subchannels: 1,
        width: Bytes(8),
        cl: Nanos(cl),
        rcd: Nanos(cl),
        rp: Nanos(cl),
        ras: Nanos(32.0),
        wr: Nanos(15.0),
        rtp: Nanos(7.5),
        // 16 clocks: x4 devices with a 512-byte page, as server modules have (JESD79-4 table 168).
        faw: Nanos(32.0 / rate),
        wtr: Nanos(5.0),
        rtw: Nanos(22.0 / rate),
        rfc: Nanos(350.0),
        refi: Nanos(7800.0),
        refresh_stops_rank: true,
        banks: 16,
        bank_groups: 4,
        row: Bytes(8192),
    }
}

const fn ddr5(rate: f64, cl: f64, rcd: f64) -> MediaTiming {
    MediaTiming {
        rate: GigaTransfers(rate),
        subchannels: 2,
        width: Bytes(4),
        cl: Nanos(cl),
        rcd: Nanos(rcd),
        rp: Nanos(rcd),
        ras: Nanos(32.0),
        wr: Nanos(30.0),
        rtp: Nanos(7.5),
        faw: Nanos(13.3),
        wtr: Nanos(6.0),
        rtw: Nanos(24.0 / rate),
        rfc: Nanos(160.0),
        refi: Nanos(1950.0),
        refresh_stops_rank: true,
        banks: 32,
        bank_groups: 8,
        row: Bytes(4096),
    }
}

impl MediaTiming {
    /// Data-bus time of one cache line on one subchannel.
    pub fn burst(&self) -> Nanos {
        Nanos(crate::units::LINE_BYTES as f64 / (self.width.get() as f64 * self.rate.get()))
    }

    /// Peak bandwidth of one whole channel, all subchannels.
    pub fn channel_peak(&self) -> GbPerSec {
        GbPerSec(self.width.get() as f64 * self.rate.get() * f64::from(self.subchannels))
    }

    /// Share of time that a refresh takes from the data bus.
    pub fn refresh_share(&self) -> f64 {
        if self.refresh_stops_rank {
            self.rfc / self.refi
        } else {
            0.0
        }
    }

    /// What refresh adds to a lone access on average. One that arrives during a refresh waits for
    /// its end, half of it on average; one whose row is open by then but whose data is not, starts
    /// again after it.
    pub fn mean_refresh_wait(&self) -> Nanos {
        let lead = if self.refresh_stops_rank {
            self.rcd + self.cl
        } else {
            Nanos(0.0)
        };
        self.rfc * (self.rfc / self.refi) / 2.0 + (self.rfc + lead / 2.0) * (lead / self.refi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_of_ddr5_4800_peaks_at_38_4_gb_s() {
        let t = Media::Ddr5_4800.timing();
        assert!((t.channel_peak().get() - 38.4).abs() < 1e-9);
        assert!((t.burst().get() - 3.333).abs() < 1e-3);
        assert!((Media::Ddr4_2666.timing().channel_peak().get() - 21.328).abs() < 1e-3);
    }

    #[test]
    fn a_lone_access_takes_longest_where_the_bus_is_narrow_and_slow() {
        let least = |media: Media| {
            let t = media.timing();
            (t.rcd + t.cl + t.burst()).get()
        };
        use Media as M;
        let order = [
            M::Ddr4_3200,
            M::Ddr4_2666,
            M::Ddr3_1866,
            M::Ddr3_1600,
            M::Ddr5_4800,
            M::Lpddr5_6400,
        ];
        for pair in order.windows(2) {
            assert!(least(pair[0]) < least(pair[1]), "{pair:?}");
        }
        let peak = |media: Media| media.timing().channel_peak().get();
        assert!((peak(M::Ddr3_1600) - 12.8).abs() < 1e-9);
        assert!((peak(M::Lpddr5_6400) - 12.8).abs() < 1e-9);
    }
}
