//! The tenants: `[tenants]`.

use std::ops::Range;
use std::str::FromStr;

use super::{File, path, size};
use crate::config::{Automatic, Config, contradiction};
use crate::limit::Share;
use crate::scope::Scope;

/// The most scopes of a list.
const MOST_SCOPES: usize = 1024;

impl File<'_, '_> {
    pub(super) fn tenants(&mut self, config: &mut Config) {
        let protect = self.scopes("protect");
        let restrain = self.scopes("restrain");
        let of_all = |scopes: &[(Scope, Range<usize>)], what| {
            let with = |(scope, span): &(Scope, Range<usize>)| (scope.clone(), span.clone(), what);
            scopes.iter().map(with).collect::<Vec<_>>()
        };
        let mut all = of_all(&protect, "protected");
        all.extend(of_all(&restrain, "restrained"));
        for (i, (scope, span, what)) in all.iter().enumerate() {
            let earlier = all[..i].iter().find(|(other, ..)| scope.overlaps(other));
            if let Some((other, _, of_other)) = earlier {
                let message = contradiction(scope, what, other, of_other);
                self.report(span.clone(), "tenants", message, None);
            }
        }
        self.automatic(config);
        config.protect = protect.into_iter().map(|(scope, _)| scope).collect();
        config.restrain = restrain.into_iter().map(|(scope, _)| scope).collect();
    }

    fn automatic(&mut self, config: &mut Config) {
        let asked = self.value("tenants", "automatic", |value| {
            value.as_bool().ok_or_else(|| "is not true or false".into())
        });
        let usual = Automatic::default();
        let mut exclude = Vec::new();
        for (scope, span) in self.scopes("exclude") {
            if !matches!(scope, Scope::Cgroup(_)) {
                let message = "only control groups can be excluded, as cgroup:/PATH".to_owned();
                self.report(span, "tenants.exclude", message, None);
            }
            exclude.push(scope);
        }
        let automatic = Automatic {
            exclude,
            slow: (self.number("tenants", "slow_pct", 1.0, 100.0))
                .map_or(usual.slow, |percent| Share::of(percent / 100.0)),
            least: self.value("tenants", "least", size).unwrap_or(usual.least),
        };
        config.automatic = asked.unwrap_or(false).then_some(automatic);
    }

    fn scopes(&mut self, key: &str) -> Vec<(Scope, Range<usize>)> {
        let Some(item) = self.table("tenants").and_then(|t| t.get(key)) else {
            return Vec::new();
        };
        let name = path("tenants", key);
        let span = item.span().unwrap_or(0..0);
        let Some(list) = item.as_array() else {
            let help = Some(format!("write `{key} = [\"unit:a.service\"]`"));
            self.report(
                span,
                &name,
                format!("`{name}` is not a list of scopes"),
                help,
            );
            return Vec::new();
        };
        if list.len() > MOST_SCOPES {
            self.report(
                span,
                &name,
                format!("`{name}` has more than {MOST_SCOPES} entries"),
                None,
            );
            return Vec::new();
        }
        let mut scopes = Vec::new();
        for value in list {
            let span = value.span().unwrap_or_else(|| span.clone());
            match value.as_str().map(Scope::from_str) {
                Some(Ok(scope)) => scopes.push((scope, span)),
                Some(Err(why)) => self.report(
                    span,
                    &name,
                    "this does not name a tenant".into(),
                    Some(why.to_string()),
                ),
                None => self.report(span, &name, "a scope is text in quotes".into(), None),
            }
        }
        scopes
    }
}
