//! The options of real applications, and which of them fit which application.

use weir_linux::application::table::entry;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Application;

use crate::context::lasts;
use crate::failure::{Failure, Result};

/// What is asked of the real application.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of real applications, on this host")]
pub struct Real {
    /// Requests in a second, at random times, whether or not earlier ones are answered; several rates are run one after
    /// the other [default: each connection sends its next request when it has an answer].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = rate)]
    pub(super) rate: Vec<f64>,
    /// Run on each of the tiers alone, one after the other.
    #[arg(long)]
    pub(super) each: bool,
    /// Size of the data [default: what the workload describes, or half of the free memory].
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<Bytes>,
    /// Time of a figure of what answers requests [default: 10 s].
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    pub(super) lasts: Option<Nanos>,
    /// Connections to a server [default: 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) connections: Option<u32>,
    /// How often a program with a run time runs [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeat: Option<u32>,
}

/// A rate of requests.
fn rate(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.1..=1e7).contains(&rate) => Ok(rate),
        Ok(_) => Err("a rate is 0.1 to 10000000 requests in a second".into()),
        Err(_) => Err(format!("`{text}` is no number of requests in a second")),
    }
}

impl Real {
    /// Refuses these options where no real application runs.
    ///
    /// # Errors
    /// One of them was given.
    pub fn refuse(&self) -> Result<()> {
        let given = [
            ("--rate", !self.rate.is_empty()),
            ("--each", self.each),
            ("--size", self.size.is_some()),
            ("--for", self.lasts.is_some()),
            ("--connections", self.connections.is_some()),
            ("--repeat", self.repeat.is_some()),
        ];
        self.refused(
            &given,
            "is of real applications on this host, not of a description on a model",
        )
    }

    fn refused(&self, given: &[(&str, bool)], why: &str) -> Result<()> {
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::request(format!("{option} {why}"))),
            None => Ok(()),
        }
    }

    /// Refuses options of the other kind of application.
    ///
    /// # Errors
    /// One of them was given.
    pub(super) fn check(&self, application: Application) -> Result<()> {
        if application.is_server() {
            let given = [("--repeat", self.repeat.is_some())];
            return self.refused(&given, "is of programs that have a run time");
        }
        let given = [
            ("--rate", !self.rate.is_empty()),
            ("--connections", self.connections.is_some()),
            ("--for", self.lasts.is_some() && !entry(application).lasts),
        ];
        self.refused(&given, "is of servers that answer requests")
    }

    /// Those that fit an application, for one of a group.
    pub(super) fn fitting(&self, application: Application) -> Self {
        let mut fits = self.clone();
        if application.is_server() {
            fits.repeat = None;
        } else {
            fits.rate.clear();
            fits.connections = None;
            fits.lasts = self.lasts.filter(|_| entry(application).lasts);
        }
        fits
    }

    pub(super) fn connections(&self) -> u32 {
        self.connections.unwrap_or(16)
    }

    /// How long a figure lasts.
    pub(super) fn seconds(&self) -> f64 {
        self.lasts.map_or(10.0, |lasts| lasts.as_secs())
    }

    pub(super) fn trials(&self) -> u32 {
        self.repeat.unwrap_or(3)
    }
}
