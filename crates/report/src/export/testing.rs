//! Made-up events for the tests of exporters.

use super::Origin;
use attribution::attribute::Confidence;
use attribution::attribute::events::Attributed;
use attribution::attribute::section::SourceText;
use model::EventClass;

pub(super) fn origin() -> Origin {
    Origin {
        source: "run/trace.dat".into(),
        kernel: Some("Linux 6.12".into()),
        clock: "mono".into(),
        tool_version: "0.1.0".into(),
    }
}

/// An event without a source.
pub(super) fn event(cpu: u32, t0_ns: i64, t1_ns: i64) -> Attributed {
    Attributed {
        cpu,
        class: EventClass::Irq,
        label: "eth0 \"rx\"\n".into(),
        t0_ns,
        t1_ns,
        net_ns: t0_ns.abs_diff(t1_ns),
        counts: true,
        sources: Vec::new(),
    }
}

/// An IPI that served two senders.
pub(super) fn served(cpu: u32, t0_ns: i64, t1_ns: i64) -> Attributed {
    let source = |cpu, who: &str, pid, site: Option<&str>| SourceText {
        site: site.map(Into::into),
        ..SourceText::new(cpu, who, pid)
    };
    Attributed {
        class: EventClass::IpiCall,
        label: "do_sync_core".into(),
        sources: vec![
            (source(0, "bash", Some(812), Some("smp_call_function_many_cond")), Confidence::Exact),
            (source(1, "interrupt: TIMER", None, None), Confidence::Order),
        ],
        ..event(cpu, t0_ns, t1_ns)
    }
}
