//! `--disturb`: a measurement while stressors run. They begin before the window opens and end
//! behind it. Their records, witnesses included, are part of the run; the papers' loaded rows are
//! such measurements.

use crate::run::disturbed::{Disturbed, Groups};
use crate::run::place::Place;
use clap::Args;
use disturb::suite::{self, Expect, Member, Placing, Suite};
use disturb::{Order, catalogue};
use journal::session::Session;
use model::stressor::StressorRecord;
use model::{Cpus, Error};
use std::time::Duration;
use sys::signals::EndSignals;

/// What distinguishes a suite from a stressor on the command line.
const SUITE: &str = "suite:";
/// How much longer than the window stressors may run: the probes get ready meanwhile.
const SLACK: Duration = Duration::from_secs(120);

/// Options of measurements that can be disturbed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Disturbing {
    /// Run these stressors while measuring, or those of suite:NAME (`stillcore disturb --list`
    /// prints both).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) disturb: Vec<String>,
    /// With --disturb, also load the measured CPUs, as some papers did.
    #[arg(long, requires = "disturb")]
    pub(crate) colocated: bool,
    /// CPUs for the stressors of --disturb to run on [default: all that are neither measured nor
    /// isolated].
    #[arg(long, value_name = "CPUS", requires = "disturb", conflicts_with = "colocated")]
    pub(crate) disturb_cpus: Option<Cpus>,
}

impl Disturbing {
    /// Who is to run where.
    pub(crate) fn orders(&self, place: &Place) -> anyhow::Result<Vec<Order>> {
        let mut orders = Vec::new();
        for name in &self.disturb {
            let suite = match name.strip_prefix(SUITE) {
                Some(id) => suite::find(id)?,
                None => alone(name)?,
            };
            let cpus = self.cpus(&suite, place)?;
            orders.extend(suite::place(&suite.members(cpus.len()), &cpus, suite.place)?);
        }
        for order in &orders {
            let spec = catalogue::find(&order.name)?;
            if spec.dangerous {
                let found =
                    format!("{} may harm the machine beyond its own end ({})", spec.name, spec.danger);
                return Err(Error::invalid("--disturb", found, "stressors that end with themselves").into());
            }
        }
        Ok(orders)
    }

    /// The CPUs that are loaded.
    fn cpus(&self, suite: &Suite, place: &Place) -> anyhow::Result<Cpus> {
        let Some(cpus) = &self.disturb_cpus else {
            let both = suite.colocated || self.colocated;
            let measured = both.then_some(&place.measured).into_iter().flat_map(Cpus::iter);
            return Ok(place.housekeeping.iter().chain(measured).collect());
        };
        machine::check_online(&place.machine, cpus)?;
        let shared = cpus.and(&place.measured);
        if !shared.is_empty() && !suite.colocated {
            let found = format!("{cpus}, of which {shared} is measured");
            return Err(Error::invalid(
                "--disturb-cpus",
                found,
                "CPUs that are not measured; see --colocated",
            )
            .into());
        }
        Ok(cpus.clone())
    }
}

/// A stressor by itself, with all CPUs.
fn alone(name: &str) -> anyhow::Result<Suite> {
    catalogue::find(name)?;
    Ok(Suite {
        id: name.to_owned(),
        title: name.to_owned(),
        source: "the command line".to_owned(),
        place: Placing::All,
        colocated: false,
        expect: Expect::Any,
        unpaced: false,
        paced_like: None,
        published_cpus: None,
        every: None,
        stressors: vec![Member { name: name.to_owned(), ..Member::default() }],
    })
}

/// Stressors while they are wanted; nothing where none are.
pub(crate) struct Running(Option<(Disturbed, Groups)>);

impl Running {
    /// Starts them and waits until they disturb.
    pub(crate) fn start(
        orders: &[Order],
        window: Duration,
        place: &Place,
        session: &mut Session,
        limits: &mut Vec<String>,
        signals: &EndSignals,
    ) -> anyhow::Result<Self> {
        if orders.is_empty() {
            return Ok(Self(None));
        }
        let groups = Groups::make(orders, &place.measured, session, limits)?;
        match Disturbed::start(orders, window + SLACK, &place.measured, &groups, session, signals) {
            Ok(disturbed) => Ok(Self(Some((disturbed, groups)))),
            Err(error) => {
                groups.remove(session)?;
                Err(error)
            }
        }
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.0.is_some()
    }

    /// Ends them and gives their records.
    pub(crate) fn stop(self, session: &mut Session) -> anyhow::Result<Vec<StressorRecord>> {
        let Some((disturbed, groups)) = self.0 else { return Ok(Vec::new()) };
        let records = disturbed.stop(session)?;
        groups.remove(session)?;
        Ok(records)
    }
}
