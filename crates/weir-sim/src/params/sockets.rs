//! Two sockets whose cores both have work: every tier as its own socket sees it, and the extra time from the
//! other socket.
//!
//! The sockets are equal except for their memory. A tier's latency from the other socket minus that from its
//! own socket, minus the slots of the link, is fixed time of the path there and back.

use weir_model::platform::{Attached, Place, Platform};

use super::error::SimError;
use super::path::{Path, TierParams, socket_link};
use crate::clock::Ps;
use crate::memory::{FarGaps, LinkConfig};

/// Constants of two sockets.
#[derive(Debug, Clone)]
pub struct SocketParams {
    /// The link between them.
    pub link: LinkConfig,
    /// Fixed time of a message to the slices of the other socket.
    pub hop: Ps,
    /// In the order of the topology's tiers, without storage.
    pub tiers: Vec<AtHome>,
}

/// A tier and its socket.
#[derive(Debug, Clone)]
pub struct AtHome {
    /// Its socket: 0, or 1 for the other one.
    pub socket: u16,
    /// The tier as its own socket sees it.
    pub tier: TierParams,
    /// Fixed times between the slices of both sockets, in both directions.
    pub out: Ps,
    pub back: Ps,
    /// Share of the lines read for ownership from the other socket that are written again.
    pub directory_write: f64,
    /// Its limit for lines of the other socket.
    pub far: FarGaps,
}

impl Path {
    /// The tiers of both sockets; `seen` is the first socket's view of them.
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
            far: FarGaps::default(),
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
                // It was not measured from the other socket, and the platform assumes no value.
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
                        far: far.config.far,
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
