//! Two sockets whose cores both have work: every tier as its own socket sees it, and what the way from
//! the other one adds.
//!
//! Sockets are alike but for their memory. What a tier's latency from the other socket has on top of that from its own, but for
//! the link's slots, is fixed time of the way there and back.

use weir_model::platform::{Attached, Place, Platform};

use super::path::{Path, socket_link};
use super::{SimError, TierParams};
use crate::clock::Ps;
use crate::memory::LinkConfig;

/// Constants of two sockets.
#[derive(Debug, Clone)]
pub struct SocketParams {
    /// The link between them.
    pub link: LinkConfig,
    /// Fixed time of a message to the other socket's slices.
    pub hop: Ps,
    /// In the order of the topology's tiers, but for storage.
    pub tiers: Vec<AtHome>,
}

/// A tier by its socket.
#[derive(Debug, Clone)]
pub struct AtHome {
    /// Which one it is of: 0, or 1 for the other.
    pub socket: u16,
    /// As seen from there.
    pub tier: TierParams,
    /// Fixed times between the slices of both sockets, there and back.
    pub out: Ps,
    pub back: Ps,
    /// Share of the lines read for ownership from the other socket that are written again.
    pub directory_write: f64,
    /// Least time between lines that are handed over; zero if that is no limit.
    pub gap: Ps,
}

impl Path {
    /// The tiers of both sockets, of which `seen` is how the first one sees them.
    pub fn sockets(
        &self,
        platform: &Platform,
        seen: &[TierParams],
    ) -> Result<Option<SocketParams>, SimError> {
        let host = &platform.host;
        let (Some(remote), [dram, .., far]) = (&host.remote, seen) else {
            return Ok(None);
        };
        let near = self.far_dram(host, remote)?;
        let out = far.config.way_out.saturating_sub(near.config.way_out);
        let back = far.config.way_back.saturating_sub(near.config.way_back);
        let of_dram = |socket, tier| AtHome {
            socket,
            tier,
            out,
            back,
            directory_write: far.config.directory_write,
            gap: 0,
        };
        let mut tiers = vec![of_dram(0, dram.clone())];
        for attached in &platform.devices {
            let at = |place| {
                let there = Attached {
                    place,
                    ..attached.clone()
                };
                self.device(&there, host)
            };
            tiers.push(match attached.place {
                // From the other socket it was not measured, nor is that assumed in the platform.
                Place::Switch => AtHome {
                    directory_write: 0.0,
                    ..of_dram(0, at(Place::Switch)?)
                },
                place => {
                    let (near, far) = (at(Place::Local)?, at(Place::Remote)?);
                    let pass = |tier: &TierParams| {
                        (tier.config.device.as_ref()).map_or(0, |device| device.pass)
                    };
                    let hop = |there: Ps, here: Ps| {
                        (there + pass(&far)).saturating_sub(here + pass(&near))
                    };
                    AtHome {
                        socket: u16::from(place == Place::Remote),
                        out: hop(far.config.way_out, near.config.way_out),
                        back: hop(far.config.way_back, near.config.way_back),
                        directory_write: 0.0,
                        gap: far.config.socket_gap,
                        tier: near,
                    }
                }
            });
        }
        tiers.push(of_dram(1, near));
        Ok(Some(SocketParams {
            link: socket_link(**remote.link()),
            hop: out,
            tiers,
        }))
    }
}
