//! Many short-lived tasks of one name, such as the children of a script, are one row.

use attribution::live::view::RowView;
use model::EventClass;

/// So many tasks of a name are listed one by one.
const FEW: usize = 3;

/// Puts tasks of the same name on a CPU together, where there are more than a few.
pub(super) fn together(rows: Vec<RowView>) -> Vec<RowView> {
    let same = |a: &RowView, b: &RowView| {
        (a.cpu, &a.label) == (b.cpu, &b.label) && [a.class, b.class] == [EventClass::Switch; 2]
    };
    let mut kept: Vec<RowView> = Vec::new();
    for row in &rows {
        let members: Vec<&RowView> = rows.iter().filter(|other| same(row, other)).collect();
        if members.len() <= FEW {
            kept.push(row.clone());
        } else if std::ptr::eq(members[0], row) {
            kept.push(sum(&members));
        }
    }
    kept
}

/// One row of several; who woke them is not one answer any more.
fn sum(members: &[&RowView]) -> RowView {
    // The one that ran most stands for them: of a program and its children most often the program.
    let most = members.iter().max_by_key(|row| row.total_ns).and_then(|row| row.pid);
    let most = most.map_or_else(String::new, |pid| format!("[{pid}]"));
    let add = |of: fn(&RowView) -> u64| members.iter().map(|row| of(row)).fold(0, u64::saturating_add);
    RowView {
        label: format!("{}{most} +{}", members[0].label, members.len() - 1),
        pid: None,
        source: None,
        confidence: None,
        count: add(|row| row.count),
        ns: add(|row| row.ns),
        minute_count: add(|row| row.minute_count),
        minute_ns: add(|row| row.minute_ns),
        total_count: add(|row| row.total_count),
        total_ns: add(|row| row.total_ns),
        max_ns: members.iter().map(|row| row.max_ns).max().unwrap_or(0),
        ..members[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: u32, class: EventClass, label: &str, pid: i32) -> RowView {
        RowView {
            cpu,
            class,
            label: label.to_owned(),
            pid: Some(pid),
            source: None,
            confidence: None,
            count: 1,
            ns: 10,
            minute_count: 2,
            minute_ns: 20,
            total_count: 3,
            total_ns: 30,
            max_ns: pid.unsigned_abs().into(),
        }
    }

    #[test]
    fn many_tasks_of_a_name_are_one_row_and_lose_nothing() {
        let mut rows = vec![row(2, EventClass::Irq, "sh", 1), row(3, EventClass::Switch, "sh", 1)];
        rows.extend((1..=3).map(|pid| row(2, EventClass::Switch, "few", pid)));
        rows.extend((1..=5).map(|pid| row(2, EventClass::Switch, "sh", pid)));
        let sums = |rows: &[RowView]| {
            rows.iter()
                .fold((0, 0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.minute_ns, sum.2 + row.total_ns))
        };
        let kept = together(rows.clone());
        assert_eq!((kept.len(), sums(&kept)), (6, sums(&rows)));
        let family =
            kept.iter().find(|row| row.label.starts_with("sh[") && row.label.ends_with("] +4")).unwrap();
        assert_eq!((family.pid, family.count, family.max_ns), (None, 5, 5));
    }
}
