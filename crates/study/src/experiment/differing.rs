//! In what a declaration differs from another of the same name, in words.

use super::declared::Experiment;

impl Experiment {
    /// The first difference of this declaration from one that a directory holds: what was there,
    /// and what is now.
    pub fn differing(&self, there: &Self) -> Option<String> {
        let quantities = self.quantities.iter().filter_map(|(name, now)| {
            let was = there.quantities.get(name)?;
            (was != now)
                .then(|| format!("{name} was {} there and is {} now", was.scaled(1.0), now.scaled(1.0)))
        });
        let levels = |of: &Self, name: &str| -> String {
            let factor = of.factors.iter().find(|factor| factor.name.get_ref() == name);
            let levels = factor.iter().flat_map(|factor| factor.levels.get_ref());
            levels.map(|level| level.name.as_str()).collect::<Vec<_>>().join(",")
        };
        let factors = self.factors.iter().filter_map(|factor| {
            let name = factor.name.get_ref();
            let (was, now) = (levels(there, name), levels(self, name));
            (was != now).then(|| format!("{name} was {was} there and is {now} now"))
        });
        let calls = |of: &Self| {
            let calls = of.steps.iter().map(|step| step.run.get_ref().join(" "));
            calls.collect::<Vec<_>>().join("; ")
        };
        let (was, now) = (calls(there), calls(self));
        let steps = (was != now).then(|| format!("the calls were {was:?} there and are {now:?} now"));
        let guest = |of: &Self| {
            let machine = &of.machine;
            let parts = [&machine.smp, &machine.arch, &machine.accel];
            let parts = parts.into_iter().flatten().cloned();
            parts.chain(machine.memory_mib.map(|mib| format!("{mib} MiB"))).collect::<Vec<_>>().join(", ")
        };
        let (was, now) = (guest(there), guest(self));
        let guests = (was != now).then(|| format!("guests were {was} there and are {now} now"));
        quantities.chain(factors).chain(steps).chain(guests).next()
    }
}
