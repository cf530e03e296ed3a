//! How published rows are answered: a [`Rule`] names the row, what kind of answer it is, and how the
//! figure is computed from [`Results`].
//!
//! A figure is a function of results. It is called for the first time when there are none: each
//! result that it reads is then noted as a request. The caller runs the requests and computes the figures again.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use weir_model::document::RowKind;
use weir_model::machine::{Identity, Testbed};
use weir_model::topology::Topology;

use crate::{Ask, Lab, LabError};

/// A platform on which something runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct On {
    /// The platform expression.
    pub platform: &'static str,
    /// Whether long windows are sampled, as long experiments need it.
    pub sampled: bool,
}

impl From<&'static str> for On {
    fn from(platform: &'static str) -> Self {
        let sampled = false;
        Self { platform, sampled }
    }
}

/// Opens the testbed of a platform, or says why there is none.
pub type Open<'a> = dyn Fn(On) -> Result<Box<dyn Testbed>, String> + Sync + 'a;

/// The result of an ask.
#[derive(Clone)]
pub struct Done {
    got: Arc<dyn Any + Send + Sync>,
    /// What makes it less than trustworthy.
    pub warnings: Vec<String>,
}

/// How an ask of any type is answered.
type Job = dyn Fn(&Lab<'_>) -> Result<Done, LabError> + Send + Sync;

/// An ask that waits to be run.
pub struct Asked {
    /// Where it is to run.
    pub on: On,
    /// Whether it uses all threads itself.
    pub all_threads: bool,
    /// What is asked for, as JSON: asks with one text on one platform are the same.
    pub what: String,
    job: Box<Job>,
}

impl Asked {
    /// The answer of a lab on its platform.
    ///
    /// # Errors
    /// As [`Ask::ask`].
    pub fn answer(&self, lab: &Lab<'_>) -> Result<Done, LabError> {
        (self.job)(lab)
    }
}

/// A platform that was opened.
pub struct Opened {
    /// Where its machines come from.
    pub testbed: Box<dyn Testbed>,
    /// Its identity.
    pub identity: Identity,
    /// Its tiers and cores.
    pub topology: Topology,
}

/// Results that figures read, and the asks that have no result yet.
pub struct Results<'a> {
    open: &'a Open<'a>,
    seed: u64,
    opened: RefCell<BTreeMap<On, Result<Rc<Opened>, String>>>,
    asked: RefCell<Vec<Asked>>,
    noted: RefCell<BTreeSet<(On, String)>>,
    done: BTreeMap<(On, String), Result<Done, String>>,
    missed: Cell<bool>,
}

impl<'a> Results<'a> {
    /// No results yet.
    pub fn new(open: &'a Open<'a>, seed: u64) -> Self {
        Self {
            open,
            seed,
            opened: RefCell::default(),
            asked: RefCell::default(),
            noted: RefCell::default(),
            done: BTreeMap::new(),
            missed: Cell::new(false),
        }
    }

    /// A platform, which is opened when a figure first needs it.
    ///
    /// # Errors
    /// It cannot be opened; the reason.
    pub fn on(&self, on: On) -> Result<Rc<Opened>, String> {
        let open = || {
            let testbed = (self.open)(on)?;
            let machine = testbed.open(self.seed).map_err(|error| error.to_string())?;
            let (identity, topology) = (machine.identity(), machine.topology().clone());
            drop(machine);
            Ok(Rc::new(Opened {
                testbed,
                identity,
                topology,
            }))
        };
        let mut opened = self.opened.borrow_mut();
        let named = |why: String| format!("platform {}: {why}", on.platform);
        let opened = opened.entry(on).or_insert_with(|| open().map_err(named));
        opened.clone()
    }

    /// A figure read from the result of an ask; any number where there is no result yet.
    ///
    /// # Errors
    /// The platform cannot be opened, the ask failed, or its result has no such figure; the reason.
    pub fn read<A: Ask + Clone + Send + 'static>(
        &self,
        on: On,
        ask: &A,
        read: impl FnOnce(&A::Got) -> Result<f64, String>,
    ) -> Result<f64, String>
    where
        A::Got: 'static,
    {
        self.on(on)?;
        let text = serde_json::to_string(ask).map_err(|error| error.to_string())?;
        let key = (on, format!("{} {text}", A::KIND));
        match self.done.get(&key) {
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(done)) => {
                let got = done.got.downcast_ref::<A::Got>();
                return read(got.ok_or("the result is of another type")?);
            }
            None => {}
        }
        self.missed.set(true);
        if self.noted.borrow_mut().insert(key.clone()) {
            let ask = ask.clone();
            let job = move |lab: &Lab<'_>| {
                let got = lab.answer(&ask)?;
                Ok(Done {
                    warnings: ask.warnings(&got),
                    got: Arc::new(got),
                })
            };
            self.asked.borrow_mut().push(Asked {
                on,
                all_threads: A::ALL_THREADS,
                what: key.1,
                job: Box::new(job),
            });
        }
        Ok(1.0)
    }

    /// The asks that were noted since this was last called, in the order in which they were noted.
    pub fn asked(&self) -> Vec<Asked> {
        self.noted.take();
        self.asked.take()
    }

    /// Keeps the result of an ask.
    pub fn keep(&mut self, asked: &Asked, result: Result<Done, String>) {
        self.done.insert((asked.on, asked.what.clone()), result);
    }

    /// The figure of a rule; `None` where a result that it needs is not there.
    pub fn figure(&self, figure: &Figure) -> Option<Result<f64, String>> {
        self.missed.set(false);
        let value = (figure.of)(self);
        (!self.missed.get()).then_some(value)
    }

    /// The digests of the platforms that were opened, by name.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let opened = self.opened.borrow();
        let opened = opened.iter().filter_map(|(on, opened)| {
            let digest = opened.as_ref().ok()?.identity.digest.clone();
            Some((on.platform.to_owned(), digest))
        });
        opened.collect()
    }

    /// What makes results less than trustworthy: each sentence once, with its platform.
    pub fn warnings(&self) -> Vec<String> {
        let done = self
            .done
            .iter()
            .filter_map(|(key, done)| Some((key.0, done.as_ref().ok()?)));
        let warnings = done.flat_map(|(on, done)| {
            (done.warnings.iter()).map(move |warning| format!("{}: {warning}", on.platform))
        });
        let distinct: BTreeSet<String> = warnings.collect();
        distinct.into_iter().collect()
    }
}

/// How a figure comes from results; the error says what is missing.
type Formula = dyn Fn(&Results<'_>) -> Result<f64, String> + Send + Sync;

/// How a figure is computed.
#[derive(Clone)]
pub struct Figure {
    /// Its unit, as published data spells it.
    pub unit: &'static str,
    /// What computes it.
    of: Arc<Formula>,
}

impl Figure {
    /// A figure in a unit.
    pub fn new(
        unit: &'static str,
        of: impl Fn(&Results<'_>) -> Result<f64, String> + Send + Sync + 'static,
    ) -> Self {
        let of = Arc::new(of);
        Self { unit, of }
    }

    /// A figure that is read from the result of one ask.
    pub fn read<A: Ask + Clone + Send + 'static>(
        unit: &'static str,
        on: impl Into<On>,
        ask: A,
        read: impl Fn(&A::Got) -> Result<f64, String> + Send + Sync + 'static,
    ) -> Self
    where
        A::Got: 'static,
    {
        let on = on.into();
        Self::new(unit, move |results| results.read(on, &ask, &read))
    }

    /// Its value.
    ///
    /// # Errors
    /// A result that it needs has no figure; the reason.
    pub fn value(&self, results: &Results<'_>) -> Result<f64, String> {
        (self.of)(results)
    }
}

/// How a published row is answered.
#[derive(Clone)]
pub struct Rule {
    /// The row.
    pub id: String,
    /// What kind of answer it is.
    pub kind: RowKind,
    /// Our figure; `None` where the row is not modelled.
    pub figure: Option<Figure>,
    /// The figure of Weir's own form of a model, where `figure` is that of the published form.
    pub own: Option<Figure>,
    /// Whether the figure is a change, of which the class means more than the difference in percent.
    pub is_change: bool,
    /// Whether it takes minutes, so that it is answered only where its paper or row is named.
    pub is_slow: bool,
    /// What to know for the comparison, or why there is no figure; empty if nothing.
    pub note: &'static str,
}

impl Rule {
    /// A row that is answered with this figure.
    pub fn new(id: impl Into<String>, kind: RowKind, figure: Figure) -> Self {
        Self {
            id: id.into(),
            kind,
            figure: Some(figure),
            own: None,
            is_change: false,
            is_slow: false,
            note: "",
        }
    }

    /// A row from which a parameter of the platform was set: the figure shows whether the model
    /// reproduces it.
    pub fn calibrated(id: impl Into<String>, figure: Figure) -> Self {
        Self::new(id, RowKind::Calibrated, figure)
    }

    /// A row that follows by arithmetic from rows or parameters that were set.
    pub fn identity(id: impl Into<String>, figure: Figure) -> Self {
        Self::new(id, RowKind::Identity, figure)
    }

    /// A row from which nothing was set.
    pub fn predicted(id: impl Into<String>, figure: Figure) -> Self {
        Self::new(id, RowKind::Predicted, figure)
    }

    /// Rows that have no answer yet, by the prefix and the numbers of their ids, and what they need.
    pub fn not_modelled(
        prefix: &str,
        numbers: impl IntoIterator<Item = u32>,
        needs: &'static str,
    ) -> impl Iterator<Item = Self> {
        numbers.into_iter().map(move |number| Self {
            id: format!("{prefix}-{number:03}"),
            kind: RowKind::NotModelled,
            figure: None,
            own: None,
            is_change: false,
            is_slow: false,
            note: needs,
        })
    }

    /// The same with a note.
    #[must_use]
    pub fn noting(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// The first rule for a row.
pub fn find<'r>(rules: &'r [Rule], id: &str) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.id == id)
}
