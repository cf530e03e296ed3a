//! Tenants as users name them: scopes of this host, and streams and programs of a model.

use std::str::FromStr;

use weir_lab::interplay::CoRunners;
use weir_model::scope::Scope;

use crate::failure::{Failure, Result};

/// What scopes begin with.
const SCOPES: [&str; 4] = ["cgroup", "unit", "container", "pid"];

/// A tenant.
#[derive(Debug, Clone)]
pub(super) enum Named {
    /// Of this host.
    Scope(Scope),
    /// Of a model, as it was written.
    Tenant(CoRunners, String),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let kind = text.trim().split(':').next().unwrap_or_default();
        if SCOPES.contains(&kind) || !text.contains(':') {
            return text
                .parse()
                .map(Self::Scope)
                .map_err(|why: weir_model::scope::NoScope| why.to_string());
        }
        let tenant: CoRunners = text.parse()?;
        Ok(Self::Tenant(tenant, text.to_owned()))
    }
}

/// The scopes among the tenants of this host.
///
/// # Errors
/// One is of a model.
pub(super) fn scopes(named: &[Named]) -> Result<Vec<Scope>> {
    let one = |named: &Named| match named {
        Named::Scope(scope) => Ok(scope.clone()),
        Named::Tenant(_, text) => Err(Failure::request(format!(
            "`{text}` is a tenant of a model, which --on names; a tenant of this host is cgroup:/PATH, \
             unit:NAME.service, container:ID or pid:NUMBER"
        ))),
    };
    named.iter().map(one).collect()
}

/// The streams and programs among the tenants of a model.
///
/// # Errors
/// One is a scope.
pub(super) fn tenants(named: &[Named]) -> Result<Vec<CoRunners>> {
    let one = |named: &Named| match named {
        Named::Tenant(tenant, _) => Ok(tenant.clone()),
        Named::Scope(scope) => Err(Failure::request(format!(
            "`{scope}` is a tenant of a host, and --on names a model; a tenant of a model is TIER:OP or TIER:PROGRAM, \
             as cxl0:nt_st or dram:redis-ycsb-a"
        ))),
    };
    named.iter().map(one).collect()
}
